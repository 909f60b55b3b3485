"""Folders of results, and results made again from them."""

import dataclasses
import json
import os
import shutil

import numpy as np
import pandas as pd
import pytest
from fits import STRONGER, WEAKER, counts
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from strategies import reduced

from agentic_bayes import (
    Conjugate,
    Frequentist,
    Hierarchical,
    count_outcomes,
    estimate,
    reproduce,
    write_results,
)
from agentic_bayes.errors import InvalidArgument, NotReproducible, OutcomesError
from agentic_bayes.estimation.estimate import Estimate
from agentic_bayes.estimation.io.netcdf import read_groups, write_groups
from agentic_bayes.judges import evidence_from_table
from agentic_bayes.outcomes.dataset import COUNTS, check_outcomes, dataset_from_counts
from agentic_bayes.reports import reproduction, results_folder
from agentic_bayes.reports.reproduction import ChangedNumber
from agentic_bayes.reports.results_folder import Manifest, read_outcomes_file

TWO = {"v1": WEAKER, "v2": STRONGER}
FILES = ["baseline.csv", "estimate.nc", "manifest.json", "outcomes.csv", "summary.csv"]


def judged():
    """Evidence of three tasks with a crash, a failure and a missing score."""
    rows = [("a", 0, 1, None), ("a", 1, 0, None), ("b", 0, 1, None), ("b", 1, None, "agent error: down")]
    rows += [("c", 0, None, "no reply"), ("c", 1, 1, None)]
    return evidence_from_table(
        pd.DataFrame(rows, columns=["task", "trial", "correct", "unscored_reason"], dtype=object)
    )


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Results of two agents, written once."""
    return write_results(estimate(counts(TWO), "hierarchical", k=1), tmp_path_factory.mktemp("written") / "results")


@pytest.fixture
def folder(written, tmp_path):
    """A copy of the results of two agents."""
    return shutil.copytree(written, tmp_path / "results")


def edit(path, before, after):
    """Change a text file."""
    text = path.read_text(encoding="utf-8")
    assert before in text
    path.write_text(text.replace(before, after, 1), encoding="utf-8")


def change_manifest(folder, **changes):
    """Change keys of the manifest."""
    record = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps(record | changes))


def test_a_folder_holds_data_fit_numbers_and_a_manifest(folder):
    """The manifest names every file with its hash, the settings with the seed, versions and platform."""
    assert sorted(path.name for path in folder.iterdir()) == FILES
    manifest = Manifest.read(folder)
    assert sorted([*manifest.files, "manifest.json"]) == FILES
    assert manifest.parsed_settings() == estimate(counts(TWO), "hierarchical", k=1).settings
    assert {"python", "numpy", "scipy", "pymc"} <= set(manifest.versions)
    assert Estimate.load(folder / "estimate.nc").agents == ("v1", "v2")


LABELS = pd.DataFrame({"judge": [1] * 30 + [0] * 10, "human": [1] * 27 + [0] * 12 + [1]})
WAYS = {
    "auto": {},  # crossed here
    "conjugate": {"method": "conjugate", "ci_kind": "hdi", "k": (1, 3)},
    "pooled": {"method": Conjugate(prior=(2, 0.5), pool_tasks=True)},
    "plug-in": {"method": Frequentist(estimator="plugin")},
    "inflated": {"method": Hierarchical(inflate=True)},
    "labels": {"judge_labels": LABELS},
    "rates": {"judge_labels": {"sensitivity": 0.9, "specificity": 0.8}},
    "prior": {"method": Hierarchical(rho=stats.beta(2, b=np.float64(5))), "random_seed": 7},
}


@pytest.mark.parametrize("way", WAYS)
def test_the_same_settings_and_seed_give_the_same_bits(way, tmp_path):
    """Whatever the method, results made again are identical."""
    found = reproduce(write_results(estimate(counts(TWO), **({"k": 1} | WAYS[way])), tmp_path / "r"))
    assert (found.verdict, found.problems, found.differences) == ("identical", (), ())
    assert found.reproduced
    assert found.compared > 100


def sampled(agents=TWO, seed=0):
    """An estimate by NUTS."""
    return estimate(counts(agents), "hierarchical", engine="pymc", k=1, random_seed=seed)


@pytest.fixture(scope="module")
def by_nuts():
    """One such estimate of the two agents."""
    return sampled()


@pytest.mark.stack
def test_draws_of_nuts_are_made_again_bit_by_bit(by_nuts, tmp_path):
    """The sampler's draws depend on nothing but data, settings and seed."""
    found = reproduce(write_results(by_nuts, tmp_path / "r"))
    assert found.verdict == "identical"
    assert found.compared > 4000 * 2 * 2


@pytest.mark.stack
def test_other_versions_of_a_sampler_are_judged_by_monte_carlo_error(by_nuts, tmp_path):
    """Another seed, as other versions would, gives other numbers that agree; other data do not."""
    folder = write_results(by_nuts, tmp_path / "r")
    change_manifest(folder, settings=dataclasses.replace(by_nuts.settings, random_seed=1).record())
    found = reproduce(folder)
    assert found.problems == ("estimate.nc was made with other settings than manifest.json says",)
    assert all(one.explained for one in found.differences)
    assert len(found.differences) > 50
    as_if = dataclasses.replace(found, problems=(), environment=("numpy 1.0, here is 2.0",))
    assert as_if.verdict == "agrees"
    assert "which is Monte-Carlo error" in str(as_if)
    assert str(as_if).endswith("made with numpy 1.0, here is 2.0")
    better = sampled({"v1": STRONGER, "v2": STRONGER})
    worse = reproduce(write_results(dataclasses.replace(better, outcomes=by_nuts.outcomes), tmp_path / "s"))
    assert any(not one.explained for one in worse.differences)


def test_evidence_is_counted_again(tmp_path):
    """The evidence is in the folder with how it was counted, and gives the counts."""
    evidence = judged()
    est = estimate(count_outcomes(evidence, errors="fail"), method="conjugate", k=1)
    with pytest.raises(InvalidArgument, match="evidence gives other counts than the estimate has: pass the arguments"):
        write_results(est, tmp_path / "r", evidence=evidence)
    assert not (tmp_path / "r").exists()
    folder = write_results(est, tmp_path / "r", evidence=evidence, counting={"errors": "fail"})
    counting = Manifest.read(folder).counting
    assert counting["errors"] == "fail"
    assert counting["threshold"] == 0.7  # written out, since defaults may change
    assert reproduce(folder).verdict == "identical"
    edit(folder / "evidence.jsonl", '"answer_score": 0.0', '"answer_score": 1.0')
    found = reproduce(folder)
    assert found.verdict == "differs"
    assert found.problems == (
        "evidence.jsonl was changed after it was written",
        "evidence.jsonl has other counts than outcomes.csv, from which the estimate was recomputed",
    )
    assert found.differences == ()


def test_an_edited_number_is_named(folder):
    """A number changed in a table is found, with the one that it should be."""
    summary = pd.read_csv(folder / "summary.csv", keep_default_na=False)
    text = str(summary["mean"][0])
    edit(folder / "summary.csv", text, "0.987")
    found = reproduce(folder)
    assert found.verdict == "differs"
    assert found.problems == ("summary.csv was changed after it was written",)
    (one,) = found.differences
    assert (one.stored, one.again) == (0.987, float(text))
    assert one.what == "summary.csv, v1 (population), pass@1, mean"
    assert f"summary.csv, v1 (population), pass@1, mean: 0.987 stored, {float(text):.3f} recomputed" in str(found)


def test_edited_counts_are_named_and_what_they_change_is_told(folder):
    """With other counts the estimate is another: the numbers say by how much."""
    first = (folder / "outcomes.csv").read_text().splitlines()[1]
    agent, task, successes, trials, *rest = first.split(",")
    edit(folder / "outcomes.csv", first, ",".join([agent, task, str(int(trials) - int(successes)), trials, *rest]))
    found = reproduce(folder)
    assert found.problems == (
        "outcomes.csv was changed after it was written",
        "estimate.nc has other counts than outcomes.csv, from which the estimate was recomputed",
    )
    assert any(not one.explained and one.what.startswith("summary.csv, v1 (population)") for one in found.differences)
    assert "differ by more than rounding or Monte-Carlo error" in str(found)


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("outcomes.csv", "missing"),
        ("outcomes.csv", "broken"),
        ("estimate.nc", "missing"),
        ("estimate.nc", "broken"),
        ("estimate.nc", "empty"),
        ("summary.csv", "broken"),
        ("summary.csv", "a folder"),
        ("baseline.csv", "empty"),
        ("baseline.csv", "a link"),
    ],
)
def test_a_file_that_is_not_what_it_was_is_named(folder, name, how, tmp_path):
    """A file that is missing, broken, or something else than a file is told, and what is left is still compared."""
    path = folder / name
    original = path.read_bytes()
    path.unlink()
    match how:
        case "broken":
            path.write_bytes(original[: len(original) // 2] + b"\xff\xfe,\n")
        case "empty":
            path.touch()
        case "a folder":
            path.mkdir()
        case "a link":
            (tmp_path / "elsewhere").write_bytes(original)
            path.symlink_to(tmp_path / "elsewhere")
    found = reproduce(folder)
    assert found.verdict == "differs"
    said = {"missing": f"{name} is missing", "broken": f"{name} was changed", "empty": f"{name} was changed"}
    assert said.get(how, f"{name} must be a file, is a link, a folder, a pipe or a device") in "\n".join(found.problems)
    assert found.compared > 100
    assert all(name in one.what for one in found.differences)


def test_without_any_counts_nothing_is_made_again(folder):
    """Where no file tells the counts, that is the answer, not an error."""
    for name in ("outcomes.csv", "estimate.nc"):
        (folder / name).unlink()
    found = reproduce(folder)
    assert found.verdict == "not made again"
    assert not found.reproduced
    assert str(found).startswith("not made again: there are no counts to make the estimate from")


def test_a_folder_may_be_moved_and_read_only(folder, tmp_path):
    """Nothing depends on where the folder is, and nothing is written to it."""
    moved = shutil.move(folder, tmp_path / "else where")
    before = {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in moved.iterdir()}
    for path in (*moved.iterdir(), moved):
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        assert reproduce(moved).verdict == "identical"
        assert {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in moved.iterdir()} == before
    finally:
        moved.chmod(0o755)


def test_the_same_estimate_gives_the_same_folder(tmp_path):
    """Two folders of one estimate are equal byte by byte but for the netCDF file, whose draws are equal."""
    one, two = (write_results(estimate(counts(TWO), k=1), tmp_path / name) for name in "ab")
    for name in ("outcomes.csv", "summary.csv", "baseline.csv"):
        assert (one / name).read_bytes() == (two / name).read_bytes()
    draws = [read_groups(place / "estimate.nc")[1]["draws"] for place in (one, two)]
    assert draws[0].identical(draws[1])


def test_a_prior_that_is_a_function_is_told_when_it_is_saved(tmp_path):
    """No file can keep a function: writing warns and leaves the estimate out, and reproducing says why."""
    est = estimate(counts(TWO), k=1, method=Hierarchical(rho=lambda rho: -rho))
    with pytest.warns(NotReproducible, match="no file can keep a prior that is a function"):
        folder = write_results(est, tmp_path / "r")
    found = reproduce(folder)
    assert found.verdict == "not made again"
    assert "no file can keep a prior that is a function" in str(found)
    assert found.problems == ()
    assert sorted(path.name for path in folder.iterdir()) == [name for name in FILES if name != "estimate.nc"]


def test_a_distribution_of_ones_own_counts_as_a_function(tmp_path):
    """A distribution that is not SciPy's cannot be found again by its name."""

    class Mine(stats.rv_continuous):
        def _logpdf(self, x):
            return -x

    est = estimate(counts(TWO), k=1, method=Hierarchical(rho=Mine(a=0, b=1, name="beta")()))
    with pytest.warns(NotReproducible, match="a function"):
        write_results(est, tmp_path / "r")


# Manifests that somebody else wrote


@pytest.mark.parametrize(
    "name", ["../outside.csv", "/etc/passwd", "..", "a/b", "a\\b", "C:x", "", "manifest.json", "a\0", "a\udcff"]
)
def test_names_in_a_manifest_do_not_lead_outside(folder, name):
    """A name that is not that of a file in the folder is refused before anything is read."""
    change_manifest(folder, files={name: {"sha256": "0" * 64, "size": 0}})
    with pytest.raises(InvalidArgument, match="files must be names of files in the folder, got"):
        reproduce(folder)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not a manifest of results"),
        ("[" * 100_000, "not a manifest of results"),
        ("[]", "must hold an object, got list"),
        ('{"format": "agentic-bayes-results/9"}', "got 'agentic-bayes-results/9'"),
        ('{"format": "agentic-bayes-results/2"}', "'command'"),
        ('{"a": NaN}', "NaN is not JSON"),
        ('{"files": {"a.csv": {"size": 1e999}}}', "the number 1e999 is too large"),
        ('{"a": 1, "a": 2}', "key 'a' occurs twice"),
        ("\udcff", "not a manifest of results"),
    ],
)
def test_a_broken_manifest_is_refused(folder, text, message):
    """JSON that is broken, too deep, or of another kind is one message."""
    (folder / "manifest.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    with pytest.raises(InvalidArgument, match=message):
        reproduce(folder)


@pytest.mark.parametrize(
    "changes",
    [
        {"settings": {}},
        {"settings": {"method": "hierarchical"}},
        {"settings": "hierarchical"},
        {"files": []},
        {"files": {"summary.csv": {}}},
        {"attrs": {"unit": "\udcff"}},
        {"files": {str(i): {"sha256": "", "size": 0} for i in range(1001)}},
        {"versions": None},
    ],
)
def test_a_manifest_with_other_content_is_refused(folder, changes):
    """Keys of another kind are refused with their name."""
    change_manifest(folder, **changes)
    with pytest.raises(InvalidArgument, match=next(iter(changes)) if "files" not in changes else "manifest"):
        reproduce(folder)


RECORD = '{"sha256": "%s", "size": 1}' % ("0" * 64)


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        (RECORD, "3", "must hold sha256 and size, got 3"),
        (": 1}", ": 3.5}", r"size must be an integer ≥ 0, got 3\.5"),
        (": 1}", ": true}", "size must be an integer ≥ 0, got True"),
        (": 1}", ": -1}", "size must be an integer ≥ 0, got -1"),
        (": 1}", ': "1"}', "size must be an integer ≥ 0, got '1'"),
        ("00000000", "0000000", "sha256 must be 64 hexadecimal digits, got '000"),
        ("00000000", "0000000x", "sha256 must be 64 hexadecimal digits, got '000"),
        ('"sha256"', '"md5"', "sha256 must be 64 hexadecimal digits, got null"),
    ],
    ids=["number", "fraction", "bool", "negative", "text", "short", "letter", "none"],
)
def test_a_manifest_with_another_record_of_a_file_is_refused(folder, before, after, message):
    """A size that is no whole number, or a hash that is none, is refused with its place and never rounded."""
    change_manifest(folder, files={"summary.csv": "RECORD"})
    edit(folder / "manifest.json", '"RECORD"', RECORD.replace(before, after, 1))
    with pytest.raises(InvalidArgument, match=rf"manifest\.json: files, 'summary\.csv':? {message}"):
        reproduce(folder)


def test_hashes_may_be_in_capitals(folder):
    """A hash is a number: upper and lower case are the same."""
    files = json.loads((folder / "manifest.json").read_text())["files"]
    change_manifest(folder, files={name: one | {"sha256": one["sha256"].upper()} for name, one in files.items()})
    assert reproduce(folder).verdict == "identical"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"unit": "x"}, "manifest.json says unit is 'x', estimate.nc says 'conversation'"),
        ({"indicator": ["tools"]}, "manifest.json says indicator is 'tools', estimate.nc says 'correct'"),
        ({"source": "y"}, "manifest.json says source is 'y', estimate.nc says nothing"),
        ({"unit": 2}, "manifest.json says unit is '2', estimate.nc says 'conversation'"),
    ],
    ids=["unit", "indicator", "more", "kind"],
)
def test_what_was_counted_must_be_what_the_estimate_says(folder, changes, problem):
    """Who edits the manifest's unit or indicator is told what the saved estimate says."""
    change_manifest(folder, attrs=Manifest.read(folder).attrs | changes)
    found = reproduce(folder)
    assert (found.verdict, found.problems) == ("differs", (problem,))


def test_a_manifest_that_says_nothing_of_what_was_counted_differs(folder):
    """Attributes that were taken out are named one by one."""
    change_manifest(folder, attrs={})
    found = reproduce(folder)
    assert found.verdict == "differs"
    assert "manifest.json says indicator is nothing, estimate.nc says 'correct'" in found.problems
    assert len(found.problems) == len(Estimate.load(folder / "estimate.nc").outcomes.attrs)


def test_attributes_of_every_kind_survive(tmp_path):
    """Numbers, texts and lists come back from JSON and from netCDF as the same."""
    kinds = {"whole": 3, "part": 0.1, "single": np.float32(0.3), "big": np.int64(2**60), "empty": "", "text": "é –"}
    kinds |= {"list": [1, 2], "one": [1], "array": np.array([1.5, 2]), "texts": ["a", "b"], "a text": ["a"]}
    outcomes = counts(TWO).assign_attrs(kinds)
    assert reproduce(write_results(estimate(outcomes, method="conjugate", k=1), tmp_path / "r")).problems == ()


@pytest.mark.parametrize("prior", [{"name": "kstest"}, {"name": "__loader__"}, {"name": "poisson"}, {"name": 3}])
def test_a_manifest_cannot_call_other_functions(folder, prior):
    """A prior is a continuous distribution of SciPy by name, and nothing else that has a name there."""
    method = {"name": "hierarchical", "options": {"rho": prior | {"args": [1.0], "kwds": {}}}}
    change_manifest(folder, settings=Manifest.read(folder).settings | {"method": method})
    with pytest.raises(InvalidArgument, match=r"prior must be a continuous distribution of scipy\.stats, got"):
        reproduce(folder)


def test_a_folder_of_an_older_version_is_refused(folder):
    """The sentence names the version that made the folder."""
    change_manifest(folder, format="agentic-bayes-results/1", versions={"agentic-bayes": "0.1.0"})
    with pytest.raises(InvalidArgument, match=r"made by agentic-bayes 0\.1\.0, which this version cannot read"):
        reproduce(folder)


def test_a_reproduction_is_a_table(folder):
    """One row per number that differs, in every form; the repr is one line."""
    edit(folder / "summary.csv", str(pd.read_csv(folder / "summary.csv")["mean"][0]), "0.987")
    found = reproduce(folder)
    (row,) = found.table().rows
    assert row[:2] == ["summary.csv, v1 (population), pass@1, mean", "0.987"]
    assert found.to_pandas()[["stored", "explained"]].to_numpy().tolist() == [[0.987, False]]
    assert json.loads(json.dumps(found.to_dict()))["verdict"] == "differs"
    assert "| number | stored | recomputed | apart |" in found.to_markdown()
    assert repr(found).startswith("Reproduction: differs: 1 of ")
    assert "\n" not in repr(found)


def test_a_manifest_that_is_huge_or_a_link_is_refused(folder, tmp_path):
    """Neither is read."""
    path = folder / "manifest.json"
    text = path.read_bytes()
    with path.open("wb") as stream:
        stream.truncate((1 << 26) + 1)
    with pytest.raises(InvalidArgument, match="must have at most 67,108,864 bytes, has 67,108,865"):
        reproduce(folder)
    path.unlink()
    (tmp_path / "other.json").write_bytes(text)
    path.symlink_to(tmp_path / "other.json")
    with pytest.raises(InvalidArgument, match=r"manifest\.json must be a file, is a link"):
        reproduce(folder)


def test_a_pipe_among_the_files_is_not_waited_for(folder):
    """A named pipe is told, and nobody waits for what it may give."""
    (folder / "summary.csv").unlink()
    os.mkfifo(folder / "summary.csv")
    assert "summary.csv must be a file, is a link, a folder, a pipe or a device" in reproduce(folder).problems


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("nowhere", "nowhere: no such folder"),
        ("results/summary.csv", r"summary\.csv is not a folder of results: it is a file"),
        (".", r"is not a folder of results: it holds no manifest\.json"),
    ],
)
def test_other_places_are_no_results(folder, place, message, tmp_path):
    """A folder without a manifest, a file or nothing at all is refused, each with its reason."""
    with pytest.raises(InvalidArgument, match=message):
        reproduce(tmp_path / place)


def test_a_folder_must_be_a_path(folder):
    """What is no path is told, not what Python makes of it."""
    with pytest.raises(InvalidArgument, match="folder must be a path, got NoneType"):
        reproduce(None)
    with pytest.raises(InvalidArgument, match="folder must be a path, got int"):
        write_results(Estimate.load(folder / "estimate.nc"), 3)


@pytest.mark.parametrize("kind", ["agent", "task"])
def test_labels_are_no_longer_than_a_table_can_hold(kind, tmp_path):
    """The longest label that comes back is kept; one more character is refused before anything is written."""
    for length in (1 << 17, (1 << 17) + 1):
        agent, task = {"agent": ("é" * length, "t"), "task": ("v", '"' * length)}[kind]
        outcomes = dataset_from_counts({(agent, task): (1, 2, 0, 0), (agent, "u"): (2, 2, 0, 0)}, {})
        est = estimate(outcomes, method="conjugate", k=1)
        if length == 1 << 17:
            assert reproduce(write_results(est, tmp_path / "kept")).verdict == "identical"
        else:
            with pytest.raises(
                InvalidArgument, match=f"{kind} labels must have at most 131,072 characters, one has 131,073"
            ):
                write_results(est, tmp_path / "refused")
    assert not (tmp_path / "refused").exists()


def test_a_label_in_the_estimate_that_no_table_holds_is_a_problem(folder):
    """Where somebody else's estimate has such a label, the tables cannot be read, and that is said."""
    agent = "v" * 200_000
    est = estimate(dataset_from_counts({(agent, "t"): (1, 2, 0, 0)}, {}), method="conjugate", k=1)
    est.save(folder / "estimate.nc")
    (folder / "outcomes.csv").unlink()
    change_manifest(folder, settings=est.settings.record())
    found = reproduce(folder)
    assert found.verdict == "differs"
    assert "summary.csv cannot be read: field larger than field limit (131072)" in found.problems


def test_draws_that_were_changed_are_found(folder):
    """The draws of the saved estimate are compared, too."""
    record, groups = read_groups(folder / "estimate.nc")
    groups["draws"]["mu"][0, 0] += 1e-12
    write_groups(folder / "estimate.nc", record, groups)
    found = reproduce(folder)
    assert found.problems == ("estimate.nc was changed after it was written",)
    (one,) = found.differences
    assert one.what == "estimate.nc, draws of mu"
    assert one.size == pytest.approx(1e-12, rel=0.01)


# The parts


texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)


@given(
    st.dictionaries(
        st.tuples(texts, texts),
        st.tuples(st.integers(0, 2**40), st.integers(0, 2**40), st.integers(0, 3)),
        min_size=1,
        max_size=12,
    )
)
@settings(max_examples=reduced(60), deadline=None)
def test_counts_survive_their_file(tmp_path_factory, cells):
    """Whatever the labels are called, the file of counts gives the same counts, untried tasks included."""
    made = {key: (c, c + failed, unscored, unscored) for key, (c, failed, unscored) in cells.items()}
    outcomes = check_outcomes(dataset_from_counts(made, {"unit": "conversation"}))
    path = tmp_path_factory.mktemp("r") / "outcomes.csv"
    path.write_bytes(results_folder._outcomes_text(outcomes).encode())
    again = read_outcomes_file(path, outcomes.attrs)
    for name in COUNTS:
        assert again[name].equals(outcomes[name])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("agent,task,correct\n", "columns must be agent, task, successes, trials, unscored, errored, got"),
        ("agent,task,successes,trials,unscored,errored\na,t,3,2,0,0\n", "successes must not exceed trials"),
        ("agent,task,successes,trials,unscored,errored\na,t,1,2\n", "not the outcomes that were written"),
        ("agent,task,successes,trials,unscored,errored\na,t,1,2,0,0\na,t,1,2,0,0\n", "agent 'a', task 't' twice"),
        ("agent,task,successes,trials,unscored,errored\na,t,1,99999999999999999999,0,0\n", "not the outcomes"),
    ],
)
def test_a_file_of_other_counts_is_refused(tmp_path, text, message):
    """Counts that cannot be are refused."""
    path = tmp_path / "outcomes.csv"
    path.write_text(text)
    with pytest.raises(OutcomesError, match=message):
        read_outcomes_file(path, {})


def test_what_is_undefined_on_one_side_is_never_explained():
    """A number that became undefined is a difference that no error explains."""
    assert not ChangedNumber("x", float("nan"), 0.5, 1.0).explained
    assert str(ChangedNumber("x", float("nan"), 0.5, 1.0)) == "x: – stored, 0.500 recomputed"
    assert ChangedNumber("x", 0.5, 0.5 + 1e-12, 1e-9).explained


@pytest.mark.parametrize("probability", [0.5, 0.025, 0.16])
def test_the_error_of_a_quantile_is_that_of_normal_draws(probability):
    """The standard error of a quantile, against simulated draws."""
    draws = np.random.default_rng(0).standard_normal((4000, 2000))
    simulated = np.quantile(draws, probability, axis=1).std() * np.sqrt(2000)
    assert reproduction._quantile_error(probability) == pytest.approx(simulated, rel=0.05)


def test_results_of_another_version_are_said_to_be(folder):
    """Versions and platform that differ are listed next to the verdict, whatever it is."""
    versions = Manifest.read(folder).versions
    change_manifest(folder, versions=versions | {"numpy": "1.0"}, platform="Plan9 mips")
    found = reproduce(folder)
    assert found.verdict == "identical"
    here = results_folder.this_platform()
    assert found.environment == (f"numpy 1.0, here is {versions['numpy']}", f"Plan9 mips, here is {here}")
