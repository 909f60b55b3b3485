"""Files are written completely or not at all."""

import errno

import pytest
from fits import UNEQUAL, fit

from agentic_bayes.reports.results_folder import write_results


def test_where_there_is_no_room_the_error_names_the_file_and_no_half_of_it_is_left(tmp_path, small_files):
    """HDF5, too, which would crash the process; a folder of results without its manifest is refused by all readers."""
    est = fit("quadrature", UNEQUAL)
    with small_files(20_000), pytest.raises(OSError, match=r"File too large") as caught:
        est.save(tmp_path / "e.nc")
    assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, str(tmp_path / "e.nc"))
    assert list(tmp_path.iterdir()) == []
    write_results(est, tmp_path)
    before = (tmp_path / "summary.csv").read_bytes()
    with small_files(20_000), pytest.raises(OSError, match=r"File too large: '.*summary\.csv"):
        write_results(est, tmp_path)
    assert (tmp_path / "summary.csv").read_bytes() == before
    assert not (tmp_path / "manifest.json").exists()
