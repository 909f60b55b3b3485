"""Estimates for ArviZ and on disk."""

import dataclasses
import json
import random
from functools import cache

import arviz as az
import h5py
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from fits import ALONE, ENGINES, EVERY, KS, STRONGER, UNEQUAL, WEAKER, counts, fit, fit_two, row, rows

from agentic_bayes.errors import EstimateError
from agentic_bayes.estimation.estimate import Estimate, estimate
from agentic_bayes.estimation.io import groups, stacks
from agentic_bayes.estimation.methods.options import Conjugate, Frequentist
from agentic_bayes.formatting import Metric


@pytest.fixture(params=ENGINES)
def engine(request):
    return request.param


@cache
def arviz(est):
    """All draws of an estimate."""
    return est.to_arviz()


@cache
def short(est):
    """Those without single tasks."""
    return est.to_arviz(tasks=False)


def posterior(est, tasks=True):
    return stacks.group(arviz(est) if tasks else short(est), "posterior")


@pytest.mark.stack
class TestToArviz:
    """Draws under their names, as this stack's ArviZ takes them."""

    def test_type_and_groups(self, engine):
        """InferenceData on ArviZ 0.x, DataTree on 1.x, with posterior and data."""
        data = arviz(fit_two(engine))
        if stacks.is_major_one():
            assert isinstance(data, xr.DataTree)
            found = {name.strip("/") for name in data.groups} - {""}
        else:
            assert isinstance(data, az.InferenceData)
            found = set(data.groups())
        assert {"posterior", "observed_data"} <= found
        assert ("sample_stats" in found) == (engine == "pymc")
        observed = stacks.group(data, "observed_data")
        scored = [cell[0] for cell in WEAKER if cell[1]]
        np.testing.assert_array_equal(observed["successes"][: len(scored)], scored)

    def test_dims(self, engine):
        """4 chains × 1,000 draws of μ, ρ (agent), both metrics (agent, estimand, k) and p (agent, task)."""
        draws = posterior(fit_two(engine))
        sample = ("chain", "draw")
        assert draws["mu"].dims == draws["rho"].dims == (*sample, "agent")
        assert draws["pass_at_k"].dims == draws["pass_pow_k"].dims == (*sample, "agent", "estimand", "k")
        assert draws["p"].dims == (*sample, "agent", "task")
        assert (draws.sizes["chain"], draws.sizes["draw"]) == (4, 1000)
        assert draws["estimand"].values.tolist() == ["population", "tasks"]
        assert draws["k"].values.tolist() == list(KS)
        assert draws["agent"].values.tolist() == ["v1", "v2"]

    def test_p_can_be_left_out(self, engine):
        """`tasks=False` makes no draws of single tasks, and changes no other draw."""
        short, long = posterior(fit_two(engine), tasks=False), posterior(fit_two(engine))
        assert "p" not in short
        assert "task" not in short.coords
        np.testing.assert_array_equal(short["pass_pow_k"], long["pass_pow_k"])

    def test_az_summary_equals_summary(self, engine):
        """Means of `az.summary` are those of `summary` within Monte-Carlo error, and so are sds."""
        est = fit_two(engine)
        table = az.summary(arviz(est), var_names=["pass_at_k", "pass_pow_k"], round_to="none")
        own = est.summary(columns="all")
        assert len(table) == len(own)
        for found in own.itertuples():
            theirs = table.loc[f"{Metric(found.metric).family}[{found.agent}, {found.estimand}, {found.k}]"]
            assert abs(float(theirs["mean"]) - found.mean) <= 4 * max(float(theirs["mcse_mean"]), found.sd / 4000**0.5)
            assert float(theirs["sd"]) == pytest.approx(found.sd, rel=0.12)

    def test_az_interval_equals_the_interval(self, engine):
        """The narrowest interval of ArviZ's own function is the estimate's hdi within Monte-Carlo error."""
        est = fit_two(engine)
        est = dataclasses.replace(est, settings=dataclasses.replace(est.settings, ci_kind="hdi"))
        draws = posterior(est)["pass_pow_k"].sel(agent="v2", estimand="population", k=3).values
        found = row(est.summary(columns="all"), agent="v2", estimand="population", metric="pass^3")
        lower, upper = np.asarray(az.hdi(draws.ravel(), **{"prob" if stacks.is_major_one() else "hdi_prob": 0.95}))
        assert [found["lower"], found["upper"]] == pytest.approx([lower, upper], abs=0.03)

    @pytest.mark.parametrize("engine", ALONE)
    def test_means_of_p_are_those_of_the_tasks(self, engine):
        """Draws of p average to the tasks' pass^1 within Monte-Carlo error (false-alarm rate under 12 × 6e-5)."""
        draws = posterior(fit(engine, UNEQUAL))["p"].isel(agent=0).values.reshape(-1, 12)
        found = rows(fit(engine, UNEQUAL).summary(**EVERY), estimand="task", metric="pass^1")
        assert (abs(draws.mean(axis=0) - found["mean"]) <= 4 * found["sd"] / 1500**0.5).all()

    def test_too_many_draws_of_p_are_refused(self, monkeypatch):
        """More than 10^7 values, here 10^5, are refused, with the way out; without p there is no such limit."""
        assert groups.LARGEST_P == 10**7
        monkeypatch.setattr(groups, "LARGEST_P", 10**5)
        est = estimate(counts({"a": [(1, 2)] * 26}), method="conjugate", k=1)
        with pytest.raises(EstimateError, match=r"p would have 104,000 values .* use to_arviz\(tasks=False\)"):
            est.to_arviz()
        assert posterior(est, tasks=False).sizes["draw"] == 1000

    def test_conjugate_has_no_hyperparameters(self):
        """A conjugate estimate has metrics and p, and no μ or ρ."""
        draws = posterior(estimate(counts({"v1": WEAKER, "v2": STRONGER}), method="conjugate", k=KS))
        assert set(draws.data_vars) == {"pass_at_k", "pass_pow_k", "p"}
        assert draws["estimand"].values.tolist() == ["tasks"]

    def test_the_frequentist_method_has_nothing_to_draw(self):
        """The baseline has no draws, and the error says so."""
        with pytest.raises(EstimateError, match="the frequentist method has no posterior"):
            estimate(counts({"a": UNEQUAL}), method="frequentist").to_arviz()

    def test_settings_and_versions_travel_with_the_draws(self, engine):
        """The attributes of the whole hold settings, seed and versions as JSON."""
        record = json.loads(short(fit_two(engine)).attrs["agentic_bayes"])
        assert record["settings"]["random_seed"] == 0
        assert {"python", "numpy", "arviz", "agentic-bayes"} <= set(record["versions"])
        assert record["not_converged"] is False


OLDER = {"format": "agentic-bayes-estimate/1", "versions": {"agentic-bayes": "0.1.0"}}
METHODS = {
    "frequentist": {"method": Frequentist(estimator="plugin")},
    "conjugate": {"method": "conjugate", "ci_kind": "hdi", "ci_prob": 0.9},
    "pooled": {"method": Conjugate(pool_tasks=True), "random_seed": 2**63 - 1},
    **{engine: engine for engine in ENGINES},
}


@pytest.fixture(scope="module", params=METHODS)
def est(request):
    how = METHODS[request.param]
    return fit_two(how) if isinstance(how, str) else estimate(counts({"v1": WEAKER, "v2": STRONGER}), k=KS, **how)


@pytest.fixture(scope="module")
def loaded(est, tmp_path_factory):
    """The estimate, saved and loaded."""
    return Estimate.load(est.save(tmp_path_factory.mktemp("estimate") / "new folder" / "fit.nc"))


class TestSaveAndLoad:
    """One file that reproduces a result."""

    def test_a_loaded_estimate_gives_the_same_bits(self, est, loaded):
        """Summary, baseline, settings, versions and representation survive the way to disk and back."""
        pd.testing.assert_frame_equal(loaded.summary(**EVERY), est.summary(**EVERY), check_exact=True)
        pd.testing.assert_frame_equal(loaded.baseline(columns="all"), est.baseline(columns="all"), check_exact=True)
        assert loaded.settings == est.settings
        assert loaded.versions == est.versions
        assert loaded.diagnostics == est.diagnostics
        assert repr(loaded) == repr(est)
        xr.testing.assert_identical(loaded.outcomes, est.outcomes)

    def test_a_loaded_estimate_can_be_saved_again(self, est, loaded, tmp_path):
        """Saving what was loaded loses nothing."""
        twice = Estimate.load(loaded.save(tmp_path / "twice.nc"))
        pd.testing.assert_frame_equal(twice.summary(**EVERY), est.summary(**EVERY), check_exact=True)

    @pytest.mark.stack
    def test_draws_survive(self, engine, tmp_path):
        """The draws for ArviZ are the same bits before and after."""
        loaded = Estimate.load(fit_two(engine).save(tmp_path / "fit.nc"))
        xr.testing.assert_equal(posterior(loaded), posterior(fit_two(engine)))

    def test_saving_over_a_file_replaces_it_and_leaves_nothing_behind(self, tmp_path):
        """A file is written beside its place and moved there."""
        path = tmp_path / "fit.nc"
        path.write_text("something else")
        estimate(counts({"a": UNEQUAL}), method="conjugate").save(path)
        assert Estimate.load(path).method == Conjugate()
        assert [entry.name for entry in tmp_path.iterdir()] == ["fit.nc"]

    def test_other_programs_can_read_the_file(self, tmp_path):
        """It is plain netCDF: xarray reads the counts without this package."""
        path = estimate(counts({"v1": WEAKER, "v2": STRONGER}), method="conjugate").save(tmp_path / "fit.nc")
        with xr.open_dataset(path, group="outcomes", engine="h5netcdf") as ds:
            assert ds["successes"].sum() == sum(cell[0] for cell in (*WEAKER, *STRONGER))
            assert ds["agent"].values.tolist() == ["v1", "v2"]

    def test_names_of_any_script_survive(self, tmp_path):
        """Agents and attributes may hold any Unicode text."""
        est = estimate(counts({"агент 🤖": UNEQUAL}, judge="judge «x»"), method="conjugate")
        loaded = Estimate.load(est.save(tmp_path / "fit.nc"))
        assert loaded.agents == ("агент 🤖",)
        assert loaded.outcomes.attrs["judge"] == "judge «x»"


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return fit_two("pymc").save(tmp_path_factory.mktemp("saved") / "fit.nc").read_bytes()


@pytest.mark.stack  # their file holds draws by NUTS
class TestUnreadableFiles:
    """A file that is not a whole, saved estimate is refused; it never gives other numbers."""

    def test_no_file(self, tmp_path):
        """A missing file is named, with the nearest one there is."""
        (tmp_path / "estimate.nc").write_bytes(b"")
        with pytest.raises(EstimateError, match=r"estimat\.nc: no such file \(did you mean 'estimate\.nc'\?\)"):
            Estimate.load(tmp_path / "estimat.nc")

    @pytest.mark.parametrize("content", [b"", b"agent,task,correct\nv1,a,1\n", b"\x89HDF\r\n\x1a\n", b"\x89HDF" * 400])
    def test_a_foreign_file(self, tmp_path, content):
        """Empty files, tables and the bare beginning of an HDF5 file are no estimates."""
        path = tmp_path / "x.nc"
        path.write_bytes(content)
        with pytest.raises(EstimateError, match=r"x\.nc: not an estimate saved by agentic_bayes"):
            Estimate.load(path)

    def test_a_foreign_netcdf(self, tmp_path):
        """A netCDF file written by others is no estimate."""
        path = tmp_path / "x.nc"
        xr.Dataset({"x": ("i", [1, 2])}).to_netcdf(path, engine="h5netcdf")
        with pytest.raises(EstimateError, match=r"x\.nc: not an estimate saved by agentic_bayes"):
            Estimate.load(path)

    @pytest.mark.parametrize("record", ["[]", "3", "{}", "{", '{"format": "agentic-bayes-estimate/2"}', '"text"'])
    def test_a_record_of_another_shape(self, tmp_path, record):
        """An attribute of the right name with the wrong content is no estimate."""
        path = tmp_path / "x.nc"
        xr.Dataset(attrs={"agentic_bayes": record}).to_netcdf(path, engine="h5netcdf")
        with pytest.raises(EstimateError, match=r"x\.nc: not an estimate saved by agentic_bayes"):
            Estimate.load(path)

    def edited(self, saved, path, change):
        """The saved file with its record changed."""
        path.write_bytes(saved)
        with h5py.File(path, "a") as file:
            record = json.loads(file.attrs["agentic_bayes"])
            change(record)
            file.attrs["agentic_bayes"] = json.dumps(record)
        return path

    def test_another_format_version(self, saved, tmp_path):
        """A file that an earlier version saved is refused in a sentence that names that version."""
        path = self.edited(saved, tmp_path / "x.nc", lambda record: record.update(OLDER))
        with pytest.raises(EstimateError, match=r"made by agentic-bayes 0\.1\.0, which this version cannot read"):
            Estimate.load(path)

    @pytest.mark.parametrize(
        "change",
        [
            lambda record: record["settings"].update(colour="red"),
            lambda record: record["settings"].pop("ci_prob"),
            lambda record: record["settings"].update(k=None),
            lambda record: record.pop("versions"),
            lambda record: record["diagnostics"].pop("rhat"),
        ],
    )
    def test_settings_that_do_not_exist(self, saved, tmp_path, change):
        """Unknown and missing settings are refused, not guessed."""
        with pytest.raises(EstimateError, match="not an estimate saved by agentic_bayes"):
            Estimate.load(self.edited(saved, tmp_path / "x.nc", change))

    def test_impossible_counts(self, saved, tmp_path):
        """Counts are checked when they are read."""
        path = tmp_path / "x.nc"
        path.write_bytes(saved)
        with h5py.File(path, "a") as file:
            file["outcomes/successes"][...] = 99
        with pytest.raises(EstimateError, match=r"not an estimate saved by .* successes must not exceed trials"):
            Estimate.load(path)

    @pytest.mark.filterwarnings("error")
    def test_damaged_bytes(self, saved, tmp_path):
        """Of a file cut off or with bytes overwritten, either the numbers are the same bits or it is refused."""
        path, chance = tmp_path / "x.nc", random.Random(1)
        whole = fit_two("pymc").summary(**EVERY)
        refused = 0
        for attempt in range(24):
            damaged = bytearray(saved)
            if attempt % 3 == 0:
                del damaged[chance.randrange(len(damaged)) :]
            else:
                for _ in range(chance.choice([1, 20, 300])):
                    damaged[chance.randrange(len(damaged))] = chance.randrange(256)
            path.write_bytes(bytes(damaged))
            try:
                loaded = Estimate.load(path)
            except EstimateError:
                refused += 1
            else:
                pd.testing.assert_frame_equal(loaded.summary(**EVERY), whole, check_exact=True)
        assert refused > 16
