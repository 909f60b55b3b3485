"""Estimates on disk: a record of plain values and some datasets, in one netCDF file."""

from __future__ import annotations

import io
import json
import platform
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentic_bayes.checks import check_output_folder
from agentic_bayes.errors import EstimateError
from agentic_bayes.whole_files import replacing

if TYPE_CHECKING:
    import xarray as xr

FORMAT = "agentic-bayes-estimate/2"
PACKAGES = ("agentic-bayes", "numpy", "scipy", "xarray", "pymc", "nutpie", "arviz")
GROUPS = ("outcomes", "draws", "sample_stats")


def write_groups(target: Path, record: Mapping[str, Any], groups: Mapping[str, xr.Dataset | None]) -> Path:
    """Write a record and datasets, completely or not at all."""
    import xarray as xr

    check_output_folder(target.parent, "the folder of the file")
    target.parent.mkdir(parents=True, exist_ok=True)
    content = io.BytesIO()  # where the disk is full, HDF5 crashes the process
    text = json.dumps({"format": FORMAT, **record})
    xr.Dataset(attrs={"agentic_bayes": text}).to_netcdf(content, engine="h5netcdf")
    for name, ds in groups.items():
        if ds is not None:
            # a checksum per array: a damaged file is refused instead of giving other numbers
            arrays = [str(v) for v in ds.data_vars if ds[v].ndim and ds[v].dtype.kind in "iufb"]
            sums = {variable: {"fletcher32": True} for variable in arrays}
            ds.to_netcdf(content, group=name, mode="a", engine="h5netcdf", encoding=sums)
    with replacing(str(target)) as file:
        file.write(content.getbuffer())
    return target


def read_groups(source: Path) -> tuple[dict[str, Any], dict[str, xr.Dataset]]:
    """The record and the datasets of a saved estimate, loaded."""
    import h5py  # type: ignore[import-untyped]
    import xarray as xr

    with h5py.File(source) as file:  # h5netcdf leaves half-open files behind where this fails
        names = [name for name in GROUPS if name in file]
    with xr.open_dataset(source, engine="h5netcdf") as root:
        record = json.loads(root.attrs["agentic_bayes"])
    if record["format"] != FORMAT:
        raise EstimateError(f"{source}: {made_by(record.get('versions'))}; estimate its outcomes again")
    groups = {}
    for name in names:
        with xr.open_dataset(source, engine="h5netcdf", group=name) as ds:
            groups[name] = ds.load()
    return record, groups


def made_by(versions: object) -> str:
    """Which version made a file that this one does not read."""
    maker = versions.get("agentic-bayes", "unknown") if isinstance(versions, Mapping) else "unknown"
    return f"made by agentic-bayes {maker}, which this version cannot read"


def installed_versions() -> dict[str, str]:
    """Versions of Python and of the packages that numbers depend on."""
    return {"python": platform.python_version(), **{name: _installed_version(name) for name in PACKAGES}}


@cache
def _installed_version(name: str) -> str:
    """Version of an installed package, read once: every estimate names it, and reading takes as long as a fit."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "unknown"
