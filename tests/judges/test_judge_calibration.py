"""A judge measured against people: published data first, then closed forms, then what can go wrong."""

import itertools
import json
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, mannwhitneyu
from strategies import reduced

import agentic_bayes as ab
from agentic_bayes.errors import EvidenceError, InvalidArgument, UnknownName
from agentic_bayes.evidence.recorded import evidence_from_table
from agentic_bayes.judges.calibration import calibrate_judge
from agentic_bayes.judges.error_rates import Proportion, labels_needed
from agentic_bayes.judges.labels import sample_for_labelling
from agentic_bayes.judges.raters import agreement
from agentic_bayes.judges.roc import auc_interval, auc_variance, roc
from agentic_bayes.outcomes.count import count_outcomes


def scored(scores, **columns):
    """Evidence of one agent and one attempt per task, with these scores."""
    return evidence_from_table(pd.DataFrame({"task": range(len(scores)), "score": scores, **columns}))


def labelled(human, **columns):
    """Labels of one attempt per task."""
    return pd.DataFrame({"task": range(len(human)), "human": human, **columns})


SCORES = [0.95, 0.9, 0.8, 0.75, 0.6, 0.9, 0.3, 0.2, 0.1, 0.0]
HUMAN = [1, 1, 1, 1, 1, 0, 0, 0, 0, 0]


# Published values


def test_pandalm_judges(shared_data):
    """Judge accuracies on PandaLM are the published .668 and .698, inside their intervals.

    The published rule takes "Tie" as the verdict 0, a tie, and a reply that could not be read ("garbage") as wrong.
    Stated as labels: people pass a verdict that is their majority's.
    """
    table = pd.read_csv(shared_data("pandalm/tidy.csv"), dtype=str)
    table["human"] = (table["verdict"] == table["human_majority"]).astype(int)
    for judge, published in {"pandalm-7b": 0.668, "gpt-3.5-turbo": 0.698}.items():
        part = table[table["agent"] == judge]
        found = calibrate_judge(evidence_from_table(part.assign(correct=1)), part)
        assert found.labels == 999
        assert found.precision.value == pytest.approx(published, abs=5e-4)
        for lower, upper in (
            (found.precision.lower, found.precision.upper),
            (found.precision.wilson_lower, found.precision.wilson_upper),
        ):
            assert lower < published < upper
            assert upper - lower < 0.06


def test_pandalm_ties_and_garbage(shared_data):
    """By our rules "Tie" is the verdict 0 and "garbage" is unscored: 697 right of 974 scored, not of 999."""
    table = pd.read_csv(shared_data("pandalm/tidy.csv"), dtype=str)
    part = table[table["agent"] == "gpt-3.5-turbo"].copy()
    part["judge"] = part["judge_raw"].replace({"Tie": "0", "garbage": None})
    part["score"] = (part["judge"] == part["human_majority"]).astype(float).where(part["judge"].notna())
    evidence = evidence_from_table(part)
    assert evidence.unscored == 25
    counts = count_outcomes(evidence)
    right, trials = int(counts["successes"].sum()), int(counts["trials"].sum())
    assert (part["judge_raw"] == "Tie").sum() == 38
    assert trials == 974
    assert right == 697
    assert part.loc[part["judge_raw"] == "Tie", "score"].sum() == 5
    found = agreement(part, raters=["judge", "human_majority"], resamples=200)
    assert found.raw().value == pytest.approx(right / trials)
    assert found.kappa().items == 974
    assert found.kappa().lower < found.kappa().value < found.kappa().upper


@pytest.mark.parametrize(("both", "published"), [(True, 0.73), (False, 0.85)])
def test_intake_judge_precision(shared_data, both, published):
    """Of 41 findings of the intake judge both reviewers uphold .73 and at least one .85, inside the interval."""
    table = pd.read_csv(shared_data("tau2_intake_judge/tidy.csv"))
    one, two = table["human1"] == 1, table["human2"] == 1
    table["human"] = (one & two if both else one | two).astype(int)
    found = calibrate_judge(evidence_from_table(table.assign(correct=1)), table)
    assert found.precision.value == pytest.approx(published, abs=5e-3)
    assert found.precision.lower < published < found.precision.upper
    assert found.specificity.value == 0
    assert math.isnan(found.kappa.lower)  # a judge that passes everything: kappa is 0 whatever people say
    assert found.kappa.value == 0


def test_published_area_under_the_roc():
    """The area and its standard error are those of Hanley and McNeil's 109 CT images (1982): .893 and .032."""
    normal, abnormal = [33, 6, 6, 11, 2], [3, 2, 2, 11, 33]
    ratings = np.concatenate([np.repeat(np.arange(5.0), normal), np.repeat(np.arange(5.0), abnormal)])
    curve = roc(ratings, np.arange(109) >= 58)
    assert curve.auc == pytest.approx(0.893, abs=5e-4)
    assert math.sqrt(auc_variance(curve.auc, 51, 58, (50, 57))) == pytest.approx(0.032, abs=1e-3)


# Closed forms


def test_the_counts_and_rates_of_a_small_table():
    """Counts, shares, both intervals and kappa of ten labels are those worked out by hand and by SciPy."""
    found = calibrate_judge(scored(SCORES), labelled(HUMAN))
    assert (found.true_passes, found.missed_passes, found.true_fails, found.false_passes) == (4, 1, 4, 1)
    assert found.sensitivity.value == found.specificity.value == found.agreement.value == found.precision.value == 0.8
    assert found.kappa.value == pytest.approx(0.6)
    assert (found.sensitivity.lower, found.sensitivity.upper) == pytest.approx(beta.interval(0.95, 6, 2))
    assert found.sensitivity.mean == 0.75
    assert found.sensitivity.wilson_lower == pytest.approx(0.3755, abs=1e-4)
    assert found.sensitivity.wilson_upper == pytest.approx(0.9638, abs=1e-4)
    assert found.labels == 10
    assert found.unit == "attempt"
    narrower = calibrate_judge(scored(SCORES), labelled(HUMAN), ci_prob=0.5)
    assert narrower.sensitivity.upper - narrower.sensitivity.lower < found.sensitivity.upper - found.sensitivity.lower


def test_the_threshold_decides():
    """A score passes from the threshold on, as in counts of conversations."""
    for threshold in (0.6, 0.61, 0.0, 1.0):
        found = calibrate_judge(scored(SCORES), labelled(HUMAN), threshold=threshold)
        counts = count_outcomes(scored(SCORES), threshold=threshold)
        assert found.true_passes + found.false_passes == int(counts["successes"].sum())


points = st.lists(
    st.tuples(st.sampled_from([0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0]), st.booleans()), min_size=1, max_size=25
)


@given(pairs=points)
@settings(max_examples=reduced(60), deadline=None)
def test_roc_and_best_threshold_by_their_definitions(pairs):
    """The area is the Mann-Whitney statistic, each point a count, and no threshold has a larger J than the best."""
    scores, human = np.array([s for s, _ in pairs]), np.array([h for _, h in pairs])
    found = calibrate_judge(scored(scores), labelled(human.astype(int)))
    if human.all() or not human.any():
        assert math.isnan(found.auc)
        assert math.isnan(found.best_threshold)
        return
    statistic = mannwhitneyu(scores[human], scores[~human]).statistic / (human.sum() * (~human).sum())
    assert found.auc == pytest.approx(statistic)
    assert found.auc_lower <= found.auc <= found.auc_upper

    def youden(threshold):
        return np.mean(scores[human] >= threshold) - np.mean(scores[~human] >= threshold)

    table = found.roc_points()
    for threshold, j in zip(table["threshold"], table["youden"], strict=True):
        assert j == pytest.approx(youden(threshold))
    assert found.best_youden == pytest.approx(max(youden(t) for t in (*np.unique(scores), 0.7)))
    assert youden(found.best_threshold) == pytest.approx(found.best_youden)
    if youden(0.7) == pytest.approx(found.best_youden, abs=1e-13):
        assert found.best_threshold == 0.7


def test_a_perfect_area_has_a_width():
    """Scores that tell the classes apart without error give an interval below 1, which narrows with more labels."""
    few, many = auc_interval(1.0, 5, 5), auc_interval(1.0, 50, 50)
    assert few[1] == many[1] == 1
    assert few[0] < many[0] < 1
    assert auc_interval(0.0, 5, 5)[1] == pytest.approx(1 - few[0])
    assert auc_interval(0.8, 20, 30) == pytest.approx([1 - end for end in auc_interval(0.2, 20, 30)][::-1])


def test_the_interval_of_the_area_covers():
    """In 1,000 simulated sets of 15 + 25 labels the 95 % interval holds the true area .93 to .985 of the time.

    A nominal interval leaves this range with a probability below .01.
    """
    rng = np.random.default_rng(3)
    truth = 0.8563  # Φ(1.5/√2) of two normals 1.5 apart
    hits = 0
    for _ in range(1000):
        scores = np.concatenate([rng.normal(1.5, 1, 15), rng.normal(0, 1, 25)])
        lower, upper = auc_interval(roc(scores, np.arange(40) < 15).auc, 15, 25)
        hits += lower <= truth <= upper
    assert 930 <= hits <= 985


def test_scores_against_people():
    """The reliability table counts labels per tenth of the score; a score on a border is in the part above."""
    found = calibrate_judge(scored([0.3, 0.35, 0.7, 1.0, 1.0]), labelled([0, 1, 1, 1, 0])).reliability()
    assert found["from"].tolist() == [0.3, 0.7, 0.9]
    assert found["labels"].tolist() == [2, 1, 2]
    assert found["human_pass"].tolist() == [0.5, 1, 0.5]
    assert found["mean_score"].tolist() == pytest.approx([0.325, 0.7, 1.0])
    assert (found["lower"] < found["human_pass"]).all()
    assert (found["upper"] >= found["human_pass"]).all()


# Attempts, turns and tasks


def test_an_attempt_is_judged_by_its_worst_turn():
    """An attempt fails with one failed turn, even beside an unscored one; where neither is known it is not used."""
    table = pd.DataFrame(
        {
            "task": list("aabbccdd"),
            "interaction": [0, 1] * 4,
            "score": [0.9, 0.8, 0.9, 0.2, 0.1, None, 0.9, None],
        }
    )
    labels = pd.DataFrame({"task": list("abcd"), "human": [1, 1, 0, 1]})
    found = calibrate_judge(evidence_from_table(table), labels)
    assert (found.true_passes, found.missed_passes, found.true_fails, found.false_passes) == (1, 1, 1, 0)
    assert found.unjudged == ("agent 'agent', task 'd', trial 0",)
    assert found.labels == 3
    counts = count_outcomes(evidence_from_table(table))
    assert int(counts["trials"].sum()) == 3
    assert found.to_judge_labels()["judge"].sum() == int(counts["successes"].sum())


def test_turns_may_be_labelled():
    """With an `interaction` column the labels are of turns, named as in counts of turns."""
    table = pd.DataFrame(
        {"task": list("aab"), "interaction": [0, 1, 0], "score": [0.9, 0.2, 0.9], "session_id": list("xxy")}
    )
    labels = table.assign(human=[1, 0, 0])
    found = calibrate_judge(evidence_from_table(table), labels)
    assert found.unit == "turn"
    assert found.labels == 3
    frame = found.to_judge_labels()
    assert frame.to_dict("list") == {
        "judge": [1, 0, 1],
        "human": [1, 0, 0],
        "agent": ["agent"] * 3,
        "task": ["x", "x", "y"],
        "trial": [0, 1, 0],
    }
    counts = count_outcomes(evidence_from_table(table), unit="interaction")
    assert set(frame["task"]) <= set(counts["task"].values)


def test_labels_for_an_estimate():
    """`to_judge_labels` has the columns that `estimate` takes, with the evidence's own names."""
    table = pd.DataFrame({"agent": "v1", "task": ["a", "a", "b"], "trial": [0, 1, 0], "score": [0.9, 0.2, 0.8]})
    found = calibrate_judge(evidence_from_table(table), table.assign(human=[1, 0, None]))
    assert found.blank == 1
    frame = found.to_judge_labels()
    assert list(frame.columns) == ["judge", "human", "agent", "task", "trial"]
    assert frame.values.tolist() == [[1, 1, "v1", "a", 0], [0, 0, "v1", "a", 1]]


def test_order_and_form_change_nothing(tmp_path):
    """The order of labels and the form of the table change no number."""
    labels = labelled(HUMAN, trial=0)
    path = tmp_path / "labels.csv"
    labels.to_csv(path, index=False)
    expected = str(calibrate_judge(scored(SCORES), labels))
    assert str(calibrate_judge(scored(SCORES), labels.iloc[::-1])) == expected
    assert str(calibrate_judge(scored(SCORES), path)) == expected
    assert str(calibrate_judge(scored(SCORES), labels.astype({"human": bool}))) == expected


def test_labels_of_whole_tasks_are_said_to_be_alike():
    """Several labels of one task bring a note, and kappa's interval then resamples tasks."""
    table = pd.DataFrame({"task": np.repeat(range(10), 4), "trial": [0, 1, 2, 3] * 10, "score": np.repeat(SCORES, 4)})
    found = calibrate_judge(evidence_from_table(table), table.assign(human=np.repeat(HUMAN, 4)))
    single = calibrate_judge(scored(SCORES), labelled(HUMAN))
    assert any("10 tasks with several labels" in note for note in found.notes)
    assert not any("several labels" in note for note in single.notes)
    width, wide = (result.kappa.upper - result.kappa.lower for result in (found, single))
    assert width == pytest.approx(wide, rel=0.2)


# How many labels


@given(width=st.floats(0.05, 0.6), rate=st.floats(0, 1), share=st.sampled_from([1.0, 0.5, 0.25]))
@settings(max_examples=reduced(60), deadline=None)
def test_the_number_of_labels_is_the_smallest(width, rate, share):
    """With so many labels the interval is as narrow as asked; with one fewer of the class it is not."""
    labels = labels_needed(width, rate=rate, share=share)

    def interval(of_class):
        a, b = 2 + of_class * rate, 1 + of_class * (1 - rate)
        return beta.ppf(0.975, a, b) - beta.ppf(0.025, a, b)

    of_class = math.floor(labels * share)
    assert interval(of_class) <= width + 1e-9
    assert labels == 0 or interval(of_class - 1) > width - 1e-9


def test_labels_to_add():
    """What a result asks for narrows the interval to the width, on average; what is narrow enough needs none."""
    found = calibrate_judge(scored(SCORES), labelled(HUMAN))
    more = found.labels_needed(0.2, of="specificity")
    rng = np.random.default_rng(0)
    widths = []
    for _ in range(300):
        rate = rng.beta(6, 2)
        negatives = rng.binomial(more, 0.5)
        share = Proportion.of(4 + rng.binomial(negatives, rate), 5 + negatives, 0.95)
        widths.append(share.upper - share.lower)
    assert np.mean(widths) == pytest.approx(0.2, abs=0.03)
    assert found.labels_needed(0.9) == 0
    assert found.labels_needed(0.1) > more
    with pytest.raises(UnknownName, match="unknown of 'kappa'"):
        found.labels_needed(0.1, of="kappa")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"width": 0}, "width must be"),
        ({"width": 20}, "width must be"),
        ({"width": 0.1, "rate": 90}, "rate must be"),
        ({"width": 0.1, "share": 0}, "share must be above 0"),
        ({"width": 1e-6}, "width must be reachable"),
    ],
)
def test_impossible_widths_are_refused(arguments, message):
    """A width or rate outside what is allowed is refused."""
    with pytest.raises(InvalidArgument, match=message):
        labels_needed(**arguments)


# Whom to label


@pytest.fixture(scope="module")
def grid():
    """Two agents, ten tasks, three attempts each; one attempt without a score, and one that crashed."""
    rows = [(a, t, k, 0.5) for a, t, k in itertools.product(("v1", "v2"), range(10), range(3))]
    table = pd.DataFrame(rows, columns=["agent", "task", "trial", "score"])
    table["unscored_reason"] = None
    table.loc[0, "score"] = None
    table.loc[1, ["score", "unscored_reason"]] = [None, "agent error: timeout"]
    return evidence_from_table(table)


def test_a_sample_of_attempts(grid, tmp_path):
    """A random sample has different attempts, says nothing of the judge, and its file can be filled in and read."""
    path = tmp_path / "labels.csv"
    sample = sample_for_labelling(grid, n=20, path=path)
    assert list(sample.columns) == ["agent", "task", "trial", "session_id", "human"]
    assert len(sample.drop_duplicates(["agent", "task", "trial"])) == 20
    pd.testing.assert_frame_equal(sample, sample_for_labelling(grid, n=20))
    assert not sample.equals(sample_for_labelling(grid, n=20, random_seed=1))
    with pytest.raises(EvidenceError, match="there are no labels: all 20 cells"):
        calibrate_judge(grid, path)
    filled = pd.read_csv(path, dtype=str)
    assert filled["human"].isna().all()
    filled["human"] = "1"
    filled.to_csv(path, index=False)
    assert calibrate_judge(grid, path).labels == 20
    with pytest.raises(InvalidArgument, match="already exists and may hold labels"):
        sample_for_labelling(grid, n=20, path=path)
    with pytest.raises(InvalidArgument, match="folder that exists"):
        sample_for_labelling(grid, n=20, path=tmp_path / "no" / "labels.csv")


def test_a_sample_of_tasks(grid):
    """Whole tasks come with all scored attempts of all agents; one without a score, or crashed, is never drawn."""
    sample = sample_for_labelling(grid, n=4, by="task")
    assert sample["task"].nunique() == 4
    assert len(sample) in (22, 24)
    everything = sample_for_labelling(grid, n=58)
    assert len(everything) == 58
    assert ("v1", "0", 0) not in set(everything[["agent", "task", "trial"]].itertuples(index=False, name=None))
    for by, most in (("attempt", 58), ("task", 10)):
        with pytest.raises(InvalidArgument, match=f"n must be at most {most}, the number of {by}s"):
            sample_for_labelling(grid, n=60, by=by)
    with pytest.raises(UnknownName, match="unknown by 'turn'"):
        sample_for_labelling(grid, n=1, by="turn")


def test_every_attempt_is_as_likely(grid):
    """In 200 samples of 10 of 58 attempts each attempt is drawn about 34 times.

    An even sampler leaves this range for any of them with a probability below .001.
    """
    drawn = pd.concat([sample_for_labelling(grid, n=10, random_seed=seed) for seed in range(200)])
    counts = drawn.groupby(["agent", "task", "trial"]).size()
    assert len(counts) == 58
    assert counts.between(14, 59).all()


# What can go wrong


def test_what_does_not_match_is_named():
    """Labels that are not in the evidence are named and left out; if none is, that is an error with the nearest."""
    labels = labelled([*HUMAN, 1, 0])
    found = calibrate_judge(scored(SCORES), labels)
    assert found.unmatched == ("agent 'agent', task '10', trial 0", "agent 'agent', task '11', trial 0")
    assert any("2 labels not in the evidence" in note for note in found.notes)
    with pytest.raises(EvidenceError, match=r"the evidence has none of the 10 labels.*did you mean"):
        calibrate_judge(scored(SCORES), labelled(HUMAN, trial=1))
    with pytest.raises(EvidenceError, match="no verdict on any of the 1 labelled attempt"):
        calibrate_judge(
            evidence_from_table(pd.DataFrame({"task": ["a"], "score": [None]})),
            pd.DataFrame({"task": ["a"], "human": [1]}),
        )


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (labelled([1, 2]), "row 2: human must be 0, 1, true, false or blank, got 2"),
        (labelled([1, 0]).assign(task="0"), "rows 1 and 2 are both agent 'agent', task '0', trial 0"),
        (labelled([1, 0], trial=[0, "x"]), "row 2: trial must be a whole number"),
        (labelled([1, 0], interaction=[0, None]), "row 2: interaction must be a whole number"),
        (pd.DataFrame({"task": [0]}), "no column 'human'"),
        ("labels.csv", "labels.csv: no such file"),
        (3, "table must be a data frame .*, got int"),
    ],
)
def test_wrong_labels_are_refused(labels, message):
    """What is wrong with a table of labels is named with its row."""
    with pytest.raises(EvidenceError, match=message):
        calibrate_judge(scored(SCORES), labels)


def test_agents_must_be_known():
    """Labels without an agent are those of the only agent; of two agents they must say which."""
    table = pd.DataFrame({"agent": ["v1", "v2"], "task": ["a", "a"], "score": [1, 0]})
    with pytest.raises(EvidenceError, match="no column 'agent'"):
        calibrate_judge(evidence_from_table(table), pd.DataFrame({"task": ["a"], "human": [1]}))


def test_two_judges_are_not_mixed():
    """Error rates belong to one judge: evidence of two is refused."""
    rows = [
        *scored([0.9], judge="x").rows,
        *evidence_from_table(pd.DataFrame({"task": ["b"], "score": [1]}), judge="other").rows,
    ]
    with pytest.raises(EvidenceError, match="calibration needs the evidence of one judge, but this one has 2"):
        calibrate_judge(ab.Evidence(tuple(rows)), labelled([1]))


@pytest.mark.parametrize("arguments", [{"threshold": 70}, {"threshold": True}, {"ci_prob": 95}, {"ci_prob": 1}])
def test_wrong_numbers_are_refused(arguments):
    """Threshold and probability are checked before the labels are read."""
    with pytest.raises(InvalidArgument, match="must be a number"):
        calibrate_judge(scored(SCORES), "missing.csv", **arguments)
    with pytest.raises(InvalidArgument, match="evidence must be an Evidence"):
        calibrate_judge([], labelled(HUMAN))


def test_one_sided_labels_and_chance_are_said():
    """Labels that all pass leave specificity to the prior, and a judge no better than chance is called so."""
    passing = calibrate_judge(scored(SCORES), labelled([1] * 10))
    assert math.isnan(passing.specificity.value)
    assert (passing.specificity.lower, passing.specificity.upper) == pytest.approx(beta.interval(0.95, 2, 1))
    assert any("people fail none of these" in note for note in passing.notes)
    reverse = calibrate_judge(scored(SCORES), labelled([1 - h for h in HUMAN]))
    assert any("no better than chance" in note for note in reverse.notes)
    assert any("chosen on these labels" in note for note in reverse.notes)


def test_the_text_and_the_table_hold_the_numbers():
    """The text names judge, threshold, counts and rates; the table has a row per measure; nothing can be changed."""
    found = calibrate_judge(scored(SCORES), labelled(HUMAN))
    text = str(found)
    for part in ("recorded-table/1 at threshold 0.7", "10 human labels", "sensitivity 0.750 [0.421, 0.963] (4 of 5)"):
        assert part in text
    table = found.to_pandas().set_index("measure")
    assert list(table.index) == ["sensitivity", "specificity", "agreement", "precision", "kappa", "auc"]
    assert table.loc["specificity", "value"] == 0.8
    assert table.loc["specificity", "total"] == 5
    assert pd.isna(table.loc["auc", "total"])
    with pytest.raises(AttributeError, match="cannot assign"):
        found.labels = 3


def test_a_calibration_as_markdown_and_json():
    """The Markdown table has a row per measure and the caveats below it; the JSON form has no NaN and no arrays."""
    found = calibrate_judge(scored(SCORES), labelled([1] * 10))
    lines = found.to_markdown().splitlines()
    assert [line.split(" | ")[0] for line in lines[4:10]] == [
        *("| sensitivity", "| specificity", "| agreement", "| precision", "| kappa", "| AUC")
    ]
    assert any(line.startswith("people fail none of these") for line in lines)
    record = found.to_dict()
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert (record["labels"], record["specificity"]["value"], record["auc"]) == (10, None, None)
