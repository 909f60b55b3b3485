"""The two ArviZ stacks: 0.x with InferenceData and 1.x with DataTree. Their differences live here and nowhere else."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    import xarray as xr

Convergence = Literal["rhat", "bulk", "tail"]


def arviz() -> Any:
    """ArviZ, imported without the notice by which 0.23 announces its successor."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"\s*ArviZ is undergoing a major refactor", category=FutureWarning)
        import arviz as az
    return az


def is_major_one() -> bool:
    """Whether this is ArviZ 1.x."""
    return int(arviz().__version__.split(".")[0]) >= 1


def from_groups(groups: Mapping[str, xr.Dataset], attrs: Mapping[str, Any]) -> Any:
    """InferenceData (0.x) or DataTree (1.x) from datasets."""
    if is_major_one():
        import xarray as xr

        tree = xr.DataTree.from_dict({f"/{name}": ds for name, ds in groups.items()})
        tree.attrs.update(attrs)
        return tree
    return arviz().InferenceData(attrs=dict(attrs), **groups)


def group(data: Any, name: str) -> xr.Dataset:
    """One group of InferenceData or DataTree, as a dataset."""
    return _dataset(data[name])


def rhat(posterior: xr.Dataset) -> float:
    """Largest rank-normalised split R-hat over all variables of a (chain, draw, …) dataset."""
    return max(float(v.max()) for v in _dataset(arviz().rhat(posterior)).data_vars.values())


def ess(posterior: xr.Dataset, method: str) -> float:
    """Smallest effective sample size over all variables of a (chain, draw, …) dataset; "bulk" or "tail"."""
    return min(float(v.min()) for v in _dataset(arviz().ess(posterior, method=method)).data_vars.values())


def by_parameter(posterior: xr.Dataset, statistic: Convergence) -> dict[str, float]:
    """R-hat, or bulk or tail effective sample size, of every parameter of a (chain, draw, …) dataset."""
    az = arviz()
    found = _dataset(az.rhat(posterior) if statistic == "rhat" else az.ess(posterior, method=statistic))
    values = {}
    for name, variable in found.data_vars.items():
        for index in np.ndindex(variable.shape):
            labels = [str(variable[dim].values[i]) for dim, i in zip(variable.dims, index, strict=True)]
            values[f"{name}[{', '.join(labels)}]" if labels else str(name)] = float(variable.values[index])
    return values


def pareto_k(data: Any) -> np.ndarray[Any, np.dtype[Any]]:
    """Pareto k of leaving out each cell of the log likelihood, by LOO; large values are returned, not warned of."""
    with warnings.catch_warnings():
        for message in ("Estimated shape parameter of Pareto", "The point-wise LOO is the same"):  # large; one cell
            warnings.filterwarnings("ignore", message=message, category=UserWarning)
        return np.asarray(arviz().loo(data, pointwise=True).pareto_k, dtype=np.float64).ravel()


def _dataset(data: Any) -> xr.Dataset:
    return data.to_dataset() if hasattr(data, "to_dataset") else data  # type: ignore[no-any-return]
