"""The two ArviZ stacks: 0.x with InferenceData and 1.x with DataTree. Their differences live here and nowhere else."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xarray as xr

__all__ = ["arviz", "ess", "from_groups", "group", "is_major_one", "rhat"]


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
    """InferenceData (0.x) or DataTree (1.x) from datasets.

    Parameters
    ----------
    groups : mapping
        Group name → dataset.
    attrs : mapping
        Attributes of the whole.

    Returns
    -------
    arviz.InferenceData or xarray.DataTree
    """
    if is_major_one():
        import xarray as xr

        tree = xr.DataTree.from_dict({f"/{name}": ds for name, ds in groups.items()})
        tree.attrs.update(attrs)
        return tree
    return arviz().InferenceData(attrs=dict(attrs), **groups)


def group(data: Any, name: str) -> xr.Dataset:
    """One group of InferenceData or DataTree, as a dataset."""
    found = data[name]
    return found.to_dataset() if hasattr(found, "to_dataset") else found  # type: ignore[no-any-return]


def rhat(posterior: xr.Dataset) -> float:
    """Largest rank-normalised split R-hat over all variables of a (chain, draw, …) dataset."""
    return max(float(v.max()) for v in _dataset(arviz().rhat(posterior)).data_vars.values())


def ess(posterior: xr.Dataset, method: str) -> float:
    """Smallest effective sample size over all variables of a (chain, draw, …) dataset; "bulk" or "tail"."""
    return min(float(v.min()) for v in _dataset(arviz().ess(posterior, method=method)).data_vars.values())


def _dataset(data: Any) -> xr.Dataset:
    return data.to_dataset() if hasattr(data, "to_dataset") else data  # type: ignore[no-any-return]
