"""Scrambled Sobol points, bit for bit those of `scipy.stats.qmc.Sobol`, whose import takes longer than a small fit."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np

from agentic_bayes.numerics import Array

BITS = 30


def sobol_points(dim: int, size: int, rng: np.random.Generator) -> Array:
    """Points of the unit cube, shape (size, dim), where size is a power of 2.

    Scrambled by a random lower triangular matrix and a random shift of the binary digits.

    References
    ----------
    Joe and Kuo (2008), SIAM Journal on Scientific Computing 30, 2635-2654. Matoušek (1998), Journal of Complexity 14,
    527-556.
    """
    (rng,) = rng.spawn(1)  # as SciPy does
    shift = rng.integers(2, size=(dim, BITS), dtype=np.uint32) @ (1 << np.arange(BITS))
    matrix = np.tril(rng.integers(2, size=(dim, BITS, BITS), dtype=np.uint32), -1) + np.eye(BITS)
    weight = 1 << np.arange(BITS)[::-1]  # of the digits, the first of which is the highest
    digits = (_directions(dim)[:, None, :] & weight[:, None]) > 0  # shape (dim, digits, numbers)
    scrambled = np.einsum("dpn,p->dn", (matrix @ digits.astype(np.float64)).astype(np.int64) & 1, weight)
    points = np.empty((size, dim), dtype=np.int64)
    points[0] = shift
    for power in range(size.bit_length() - 1):  # in the order of the Gray code, which mirrors what there is
        half = 1 << power
        points[half : 2 * half] = points[:half][::-1] ^ scrambled[:, power]
    return np.asarray(points * 0.5**BITS)


@lru_cache(maxsize=8)
def _directions(dim: int) -> Array:
    """Direction numbers, shape (dim, BITS), from the table that comes with SciPy."""
    import scipy

    with np.load(Path(scipy.__file__).parent / "stats" / "_sobol_direction_numbers.npz") as table:
        polynomials, first = table["poly"][:dim].tolist(), table["vinit"][:dim].tolist()
    found = [[1] * BITS]
    for polynomial, own in zip(polynomials[1:], first[1:], strict=True):
        degree = polynomial.bit_length() - 1
        numbers = own[:degree]
        for j in range(degree, BITS):
            number = numbers[j - degree]
            for k in range(degree):
                if polynomial >> (degree - 1 - k) & 1:
                    number ^= numbers[j - k - 1] << (k + 1)
            numbers.append(number)
        found.append(numbers)
    return np.array(found, dtype=np.int64) << np.arange(BITS)[::-1]
