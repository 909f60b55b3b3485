"""One estimate, one answer: every conclusion comes from the same posterior."""

import itertools

import numpy as np
import pandas as pd
import pytest
from calibration.decisions import half_tried
from fits import counts, rows
from pictures import below_title, legend_texts

from agentic_bayes.decisions.compare import compare
from agentic_bayes.decisions.gate import gate
from agentic_bayes.decisions.rank import rank
from agentic_bayes.decisions.shared_tasks import pair_of
from agentic_bayes.errors import EstimateError
from agentic_bayes.estimation.estimate import estimate
from agentic_bayes.estimation.io import stacks
from agentic_bayes.formatting import format_share
from agentic_bayes.outcomes.table import outcomes_from_table
from agentic_bayes.reports.html.question import ask
from agentic_bayes.reports.plots.comparison import plot_comparison
from agentic_bayes.reports.tables import superiority_table

# tau2-bench airline, one trial of each of 50 tasks: whether the task was solved
TAU2 = {
    "azure_gpt-4o": "10101110100011000011000000101011001010101001011101",
    "button_opus-4.6": "11111110101111011101111010111011101010101111011111",
    "gpt-oss-120b": "11001010000111000000000010100001001010001101011011",
    "qwen2.5-7b": "11001100001001000000000000000001000000000000001010",
}


def simulated(agents, tasks, trials, seed=0):
    """Agents of different ability on tasks of different difficulty."""
    rng = np.random.default_rng(seed)
    ability, difficulty = rng.normal(0.5, 0.5, agents)[:, None], rng.normal(0, 1.5, tasks)
    passed = rng.binomial(trials, 1 / (1 + np.exp(-ability - difficulty)))
    return {f"agent {i}": [(c, trials) for c in row] for i, row in enumerate(passed.tolist())}


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((TAU2, "auto"), id="tau2"),
        pytest.param((TAU2, "hierarchical"), id="tau2, unpaired"),
        pytest.param((simulated(2, 40, 4), "auto"), id="two agents"),
        pytest.param((simulated(13, 40, 3), "auto"), id="thirteen agents"),
    ],
)
def est(request):
    """An estimate of agents that tried the same tasks."""
    cells, method = request.param
    table = {name: [(int(c), 1) for c in row] if isinstance(row, str) else row for name, row in cells.items()}
    return estimate(counts(table), method, k=(1, 3))


@pytest.mark.stack
@pytest.mark.parametrize("metric", ["pass^1", "pass^3"])
def test_every_conclusion_has_the_same_draws(est, metric):
    """compare, rank, superiority and differences of ArviZ draws agree to the last bit; summaries within their error."""
    posterior = stacks.group(est.to_arviz(tasks=False), "posterior")["pass_pow_k"]
    draws = posterior.sel(estimand="population", k=int(metric[-1])).stack(sample=("chain", "draw"))
    by_agent = {name: draws.sel(agent=name).values for name in est.agents}
    ranking = rank(est, metric=metric)
    matrix, means = ranking.superiority(), rows(est.summary(), estimand="population", metric=metric)
    means = means.set_index("agent")["mean"]
    for one, other in itertools.permutations(est.agents[:3], 2):
        found = compare(est, one, baseline=other, metric=metric)
        difference = by_agent[one] - by_agent[other]
        np.testing.assert_array_equal(found.draws, difference)
        assert found.method == est.method.name
        assert found.prob_better == pytest.approx(matrix.loc[one, other], abs=1e-12)
        assert found.prob_better == pytest.approx(np.mean(difference > 0), abs=1e-12)
        assert found.mean == pytest.approx(difference.mean(), abs=1e-12)
        assert (found.lower, found.upper) == pytest.approx(tuple(np.quantile(difference, [0.025, 0.975])), abs=1e-12)
        assert abs(found.mean - (means[one] - means[other])) <= 4 * difference.std() / np.sqrt(1000)
    stacked = np.stack(list(by_agent.values()))
    best = dict(zip(by_agent, np.bincount(stacked.argmax(axis=0), minlength=len(stacked)) / 4000, strict=True))
    table = ranking.to_pandas().set_index("agent")
    assert table["prob_best"].to_dict() == pytest.approx(best)
    better = {name: 1 + np.nansum(matrix[name]) for name in est.agents}
    assert table["expected_rank"].to_dict() == pytest.approx(better)
    assert ranking.expected_false_leads == pytest.approx(np.nansum(matrix[table.index[0]]))


def test_report_and_plots_say_what_compare_says(est):
    """A page's comparisons and ranking, and the texts of a picture, are those of the estimate itself."""
    one, other = est.agents[1], est.agents[0]
    page = ask(est, one, other, "pass^3", "population")
    assert page.comparisons[0].to_dict() == compare(est, one, baseline=other, metric="pass^3").to_dict()
    if len(est.agents) > 2:
        assert page.ranking.rows == rank(est, metric="pass^3").rows
        order = list(page.ranking.superiority().index)
        cell = superiority_table(page.ranking).rows[order.index(one)][1 + order.index(other)]
        assert cell == format_share(page.comparisons[0].prob_better, 2)
    ax = plot_comparison(page.comparisons[0])
    assert legend_texts(ax)[0].endswith(f"higher): {format_share(page.comparisons[0].prob_better)}")


def test_the_leader_of_many_equals_is_said_to_be_doubtful():
    """Among thirteen agents that are alike somebody leads; the sentence says how many are not ruled out."""
    rng = np.random.default_rng(2)
    cells = {f"agent {i}": [(c, 2) for c in rng.binomial(2, 0.6, 30).tolist()] for i in range(13)}
    ranking = rank(estimate(counts(cells), "hierarchical"))
    assert 1 < ranking.expected_false_leads < 6
    assert f"; {len(ranking.rivals)} other agents not ruled out (" in str(ranking)
    assert ranking.to_dict()["expected_false_leads"] == ranking.expected_false_leads


@pytest.mark.parametrize(
    ("kind", "sets"),
    [
        *(("hardest", 2), ("random", 2)),
        *(pytest.param(kind, 40, marks=pytest.mark.slow) for kind in ("easiest", "hardest", "random")),
    ],
)
def test_equals_are_not_told_apart_by_the_tasks_they_tried(kind, sets):
    """False verdicts at most 5 % (two standard errors allowed: none in two sets); their own tasks would tell them
    apart.
    """
    false = own = 0
    for seed in range(sets):
        est = estimate(counts(half_tried(kind, np.random.default_rng(seed))), k=1)
        found = compare(est, "B", baseline="A")
        assert (found.n_shared_tasks, found.n_left_out) == (30, 30)
        assert "different_tasks" in found.flags
        false += found.verdict in ("better", "worse")
        own += compare(est, "B", baseline="A", tasks="own").verdict in ("better", "worse")
    assert false <= sets * 0.05 + 2 * np.sqrt(sets * 0.05 * 0.95)
    assert (own >= sets / 3) == (kind != "random")  # .54 in calibration


def test_an_agent_that_tried_the_easy_half_is_no_better():
    """All of 30 easy tasks solved by both, 30 hard ones by nobody and tried by one: no difference, and it is said."""
    est = estimate(counts({"A": [*[(4, 4)] * 30, *[(0, 4)] * 30], "B": [*[(4, 4)] * 30, *[(0, 0)] * 30]}))
    assert set(est.summary()["flags"].str.contains("different_tasks")) == {True}
    for metric in ("pass^1", "pass^3"):
        found = compare(est, "B", baseline="A", metric=metric)
        assert (found.mean, found.prob_better, found.verdict) == (pytest.approx(0, abs=1e-12), 0.5, "undecided")
        assert "30 tasks both attempted, 30 left out" in str(found)
        assert found.to_dict()["n_left_out"] == 30
    ranking = rank(est)
    assert [row["prob_best"] for row in ranking.rows] == [0.5, 0.5]
    assert "30 tasks all attempted, 30 left out" in str(ranking)
    assert below_title(plot_comparison(found)).endswith("30 shared tasks, 30 left out")
    gated = gate(est, "B", at_least=0.1, baseline="A")
    assert [one.probability for one in gated.requirements] == [pytest.approx(1, abs=1e-3), 0.5]
    assert "30 tasks that only one of B and A tried left out" in gated.note
    assert "different_tasks" in gated.flags
    alone = counts({"A": [(4, 4), (0, 0)], "B": [(0, 0), (4, 4)]})
    with pytest.raises(EstimateError, match="tasks='own'"):
        rank(estimate(alone))
    with pytest.raises(EstimateError, match="tasks='own'"):
        gate(estimate(alone), "A", at_least=0.1, baseline="B")
    assert (
        "assuming that all of them sample one kind of task"
        in gate(estimate(alone), "A", at_least=0.1, baseline="B", tasks="own").note
    )
    assert "assuming that all of them sample one kind of task" in rank(estimate(alone), tasks="own").rows[0]["note"]


def test_labels_of_tasks_that_are_left_out_still_tell_of_the_judge():
    """Compared on the tasks that both tried, each agent keeps the labels that name it, and no others."""
    data = counts({"A": [(3, 4)] * 12, "B": [*[(3, 4)] * 6, *[(0, 0)] * 6], "C": [(2, 4)] * 12})
    label = {"agent": "A", "judge": 1, "human": 1}
    labels = [{**label, "task": data["task"].values[i]} for i in range(6, 12) for _ in range(2)]
    labels += [{"agent": "C", "task": data["task"].values[0], "judge": 0, "human": 1}]
    est = estimate(data, "hierarchical", judge_labels=pd.DataFrame(labels), k=1)
    fit = pair_of(est, "B", "A", "shared").first.fit
    assert fit.counts.trials.tolist() == [[4] * 6] * 2
    rates = rows(fit.judge_error(), rate="sensitivity").set_index("agent")
    assert rates["n_labels"].to_dict() == {"A": 12, "B": 0}
    assert rates.loc["A", "mean"] > 0.85


@pytest.mark.parametrize("weights", [{"x": 0.9, "y": 0.1}, {"x": 0.0, "y": 1.0}, "w"])
def test_groups_without_a_shared_task_have_no_weight_in_a_comparison(weights):
    """Compared on the tasks of group x only, the weights of group y are left out, which is said."""
    table = [
        {"agent": agent, "task": f"{group}{i}", "successes": 2, "trials": 4, "g": group, "w": float(group == "y")}
        for agent, groups in (("A", "xy"), ("B", "x"))
        for group in groups
        for i in range(4 if agent == "A" else 3)
    ]
    outcomes = outcomes_from_table(table, group="g", weight="w")
    est = estimate(outcomes, "conjugate", by="g", weights=weights, k=1)
    found = compare(est, "B", baseline="A", estimand="tasks")
    assert found.n_left_out == 5
    assert [one.group for one in found.groups] == ["x", *(["(weighted)"] if weights == {"x": 0.9, "y": 0.1} else [])]
    assert ("the weights leave out 'y', of which no task is shared" in found.note) == (weights != "w")
    flags = est.summary().query("agent == 'A' and metric == 'pass^1'").set_index("group")["flags"]
    marked = {group: "different_tasks" in found for group, found in flags.items()}
    assert (marked[""], marked["x"], marked["y"]) == (True, True, False)
