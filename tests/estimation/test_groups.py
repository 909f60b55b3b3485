"""Groups of tasks: the posterior against dense sums, and everything that is made from it."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import betaln, expit

from agentic_bayes import Conjugate, Estimate, Frequentist, Hierarchical, compare, estimate, outcomes_from_table
from agentic_bayes.errors import EstimateError, InvalidArgument
from agentic_bayes.estimation.io.stacks import group
from agentic_bayes.reports.plots.forest import plot_forest

SIZES = {"book": 3, "cancel": 4, "refund": 5}
WEIGHTS = {"book": 0, "cancel": 0.3, "refund": 0.7}


def table(agents=("v1", "v2")):
    rng = np.random.default_rng(3)
    rows = []
    for agent, shift in zip(agents, (0.0, 0.4), strict=False):
        for name, size, level in zip(SIZES, SIZES.values(), (1.5, -0.7, 0.8), strict=True):
            p = expit(level + shift + rng.normal(0, 0.6, size))
            for i, c in enumerate(rng.binomial(3, p).tolist()):
                rows.append((agent, f"{name} {i}", name, float(size), c, 3))
    return pd.DataFrame(rows, columns=["agent", "task", "domain", "share", "successes", "trials"])


@pytest.fixture(scope="module")
def outcomes():
    return outcomes_from_table(table(), group="domain", weight="share")


@pytest.fixture(scope="module")
def grouped(outcomes):
    return estimate(outcomes, "auto", by="domain", weights=WEIGHTS, k=(1, 3))


def dense_means(c, n, place):
    """Mean and sd of μ of every group and of a new one, by plain sums over (ρ, τ, m, θ)."""
    theta = np.linspace(-10, 10, 251)
    step, mu = theta[1] - theta[0], expit(theta)
    tau = (np.arange(60) + 0.5) * 0.09
    rho = (np.arange(32) + 0.5) / 32
    kernels = np.exp(-0.5 * ((theta[:, None] - theta) / tau[:, None, None]) ** 2)
    kernels /= np.sqrt(2 * np.pi) * tau[:, None, None] / step
    kernels[0] = np.eye(theta.size)  # narrower than the step
    prior = np.exp(stats.logistic.logpdf(theta) - 0.5 * tau[:, None] ** 2)
    total, sums = 0.0, np.zeros((4, 2))
    for r in rho:
        a, b = mu * (1 / r - 1), (1 - mu) * (1 / r - 1)
        terms = betaln(a + c[:, None], b + (n - c)[:, None]) - betaln(a, b)
        like = np.exp(np.stack([terms[place == g].sum(axis=0) for g in range(3)]))
        integrals = np.einsum("tmx,gx->tgm", kernels, like)
        joint = prior * integrals.prod(axis=1)
        total += joint.sum()
        for g in range(4):
            others = prior * np.delete(integrals, g, axis=1).prod(axis=1) if g < 3 else joint
            density = np.einsum("tmx,tm->x", kernels, others) * (like[g] if g < 3 else 1)
            sums[g] += [density @ mu, density @ mu**2]
    mean, square = (sums / total).T
    return mean, np.sqrt(square - mean**2)


def test_the_posterior_of_three_groups_is_that_of_dense_sums(outcomes):
    """Means and sds of μ agree with sums over a fine grid of (ρ, τ, m, θ)."""
    one = outcomes.isel(agent=[0])
    method = Hierarchical(rho=stats.uniform(0, 1))
    rows = estimate(one, method, by="domain", k=1).summary(columns="all").query("estimand == 'population'")
    rows = rows[(rows["metric"] == "pass^1") & (rows["group"] != "")]
    assert rows["group"].tolist() == ["book", "cancel", "refund", "(new group)"]
    place = np.unique(one["domain"].values.astype(str), return_inverse=True)[1]
    mean, sd = dense_means(one["successes"].values[0], one["trials"].values[0], place)
    np.testing.assert_allclose(rows["mean"], mean, atol=2e-4)
    np.testing.assert_allclose(rows["sd"], sd, atol=2e-4)


def test_one_trial_per_task_in_one_group_is_close_to_a_binomial():
    """With a spread of groups near 0 the groups are one, whose μ has a Beta posterior when n = 1."""
    rows = [(f"t{i}", "ab"[i % 2], int(i < 14), 1) for i in range(20)]
    counts = outcomes_from_table(pd.DataFrame(rows, columns=["task", "family", "successes", "trials"]), group="family")
    near = Hierarchical(tau=stats.halfnorm(scale=1e-3))
    found = estimate(counts, near, by="family", k=1).summary(columns="all").query("estimand == 'population'")
    exact = stats.beta(1 + 14, 1 + 6)
    for label in ("a", "b", "(new group)"):
        row = found[(found["group"] == label) & (found["metric"] == "pass^1")].iloc[0]
        assert row["mean"] == pytest.approx(exact.mean(), abs=1e-4)
        np.testing.assert_allclose([row["lower"], row["upper"]], exact.ppf([0.025, 0.975]), atol=5e-4)


def test_a_mirrored_table_has_mirrored_groups(outcomes):
    """Success and failure exchanged give 1 - mean, new group included."""
    one = outcomes.isel(agent=[0])
    mirrored = one.assign(successes=one["trials"] - one["successes"])
    there, back = (
        estimate(part, by="domain", k=1).summary(columns="all").query("estimand == 'population' and group != ''")
        for part in (one, mirrored)
    )
    np.testing.assert_allclose(there["mean"], 1 - back["mean"], atol=1e-9)


def test_rows_are_overall_by_group_of_a_new_group_and_weighted(grouped):
    """Weighted and overall means are those of the groups, weighed."""
    rows = grouped.summary()
    assert rows.columns[:3].tolist() == ["agent", "estimand", "group"]
    one = rows[(rows["agent"] == "v1") & (rows["metric"] == "pass^3")]
    names = list(SIZES)
    assert one.query("estimand == 'population'")["group"].tolist() == ["", *names, "(new group)", "(weighted)"]
    assert one.query("estimand == 'tasks'")["group"].tolist() == ["", *names, "(weighted)"]
    for estimand in ("population", "tasks"):
        mean = one[one["estimand"] == estimand].set_index("group")["mean"]
        assert mean["(weighted)"] == pytest.approx(0.3 * mean["cancel"] + 0.7 * mean["refund"], abs=1e-12)
        assert mean[""] == pytest.approx(sum(n * mean[g] for g, n in SIZES.items()) / 12, abs=1e-12)


def test_weights_change_no_other_row(outcomes, grouped):
    """Weights apply to the posterior and never to the likelihood."""
    plain = estimate(outcomes, by="domain", k=(1, 3)).summary()
    weighted = grouped.summary()
    pd.testing.assert_frame_equal(plain, weighted[weighted["group"] != "(weighted)"].reset_index(drop=True))


def test_small_groups_borrow_from_the_others(outcomes):
    """A group's mean lies between its own estimate, alone, and the others'."""
    rows = estimate(outcomes.isel(agent=[0]), by="domain", k=1).summary().query("metric == 'pass^1'")
    mean = rows.query("estimand == 'population'").set_index("group")["mean"]
    alone = estimate(outcomes.isel(agent=[0], task=(outcomes["domain"] == "cancel").values), Hierarchical(), k=1)
    own = alone.summary().query("estimand == 'population' and metric == 'pass^1'")["mean"].iloc[0]
    assert own < mean["cancel"] < mean["book"]


@pytest.mark.parametrize("method", [Conjugate(), Hierarchical(pool_agents=False)])
def test_a_column_weighs_the_mean_over_observed_tasks(outcomes, method):
    """The weighted mean is that of the means of the tasks."""
    est = estimate(outcomes, method, weights="share", k=1)
    rows = est.summary().query("agent == 'v1' and estimand == 'tasks' and metric == 'pass^1'").set_index("group")
    tasks = est.summary(tasks=True).query("agent == 'v1' and estimand == 'task' and metric == 'pass^1'")["mean"]
    share = outcomes["share"].values
    assert rows.loc["(weighted)", "mean"] == pytest.approx(np.average(tasks, weights=share), abs=1e-9)


def test_conjugate_groups_average_their_tasks(outcomes):
    """Each task has its own Beta mean in closed form."""
    rows = estimate(outcomes, "conjugate", by="domain", k=1).summary()
    row = rows.query("agent == 'v1' and group == 'refund' and metric == 'pass^1'").iloc[0]
    here = (outcomes["domain"] == "refund").values
    c = outcomes["successes"].values[0, here]
    assert row["mean"] == pytest.approx(((c + 1) / 5).mean(), abs=1e-12)
    assert row["n_tasks"] == 5


def test_the_baseline_clusters_by_group(grouped, outcomes):
    """The interval is the cluster-robust t interval with G - 1 degrees of freedom."""
    rows = grouped.baseline(columns="all").query("agent == 'v1' and estimator == 'unbiased' and metric == 'pass^1'")
    row = rows.query("estimand == 'tasks' and group == ''").iloc[0]
    y = outcomes["successes"].values[0] / 3
    place = np.unique(outcomes["domain"].values.astype(str), return_inverse=True)[1]
    sums = np.bincount(place, weights=y - y.mean()) / y.size
    error = np.sqrt(3 / 2 * np.sum(sums**2))
    assert row["sd"] == pytest.approx(error)
    low, high = y.mean() + stats.t(2).ppf([0.025, 0.975]) * error
    assert (row["lower"], row["upper"]) == pytest.approx((max(low, 0), min(high, 1)))
    assert "clustered by domain: 3 groups" in row["note"]


def test_crossed_groups_are_observed_tasks_and_paired(outcomes):
    """There is no new task of a group, and differences are paired."""
    est = estimate(outcomes, "crossed", by="domain", k=1)
    rows = est.summary().query("group != ''")
    assert set(rows["estimand"]) == {"tasks"}
    found = compare(est, "v2", baseline="v1", estimand="tasks").by_group()
    assert found["group"].tolist() == list(SIZES)
    assert set(found["pairing"]) == {"tasks"}
    means = rows.query("metric == 'pass^1'").pivot(index="group", columns="agent", values="mean")
    np.testing.assert_allclose(found["mean"], (means["v2"] - means["v1"])[list(SIZES)], atol=1e-9)


def test_groups_of_two_estimates_are_independent():
    """Two estimates of the same counts share their draws; by group, too, the two sides are compared as independent."""
    new, old = (
        estimate(outcomes_from_table(table(("v1",)).assign(agent=name), group="domain"), by="domain", k=1)
        for name in ("new", "old")
    )
    found = compare(new, baseline=old).by_group().query("group != '(new group)'")
    one = new.summary(columns="all").query("estimand == 'population' and metric == 'pass^1'").set_index("group")
    for row in found.itertuples():
        # a difference of two independent numbers alike has √2 times the sd of one
        assert row.upper - row.lower == pytest.approx(2 * 1.96 * np.sqrt(2) * one.loc[row.group, "sd"], rel=0.15)
        assert row.prob_better == pytest.approx(0.5, abs=0.04)


def test_an_estimate_without_groups_is_compared_by_group_on_observed_tasks(outcomes):
    """Nothing is fitted again for it."""
    est = estimate(outcomes, "crossed", k=1)
    assert compare(est, "v2", baseline="v1").groups == ()
    found = compare(est, "v2", baseline="v1", estimand="tasks", by="domain")
    assert [one.group for one in found.groups] == list(SIZES)
    with pytest.raises(EstimateError, match="differences on new tasks of each domain need"):
        compare(est, "v2", baseline="v1", by="domain")


def test_a_group_that_one_agent_never_tried_has_no_mean_over_observed_tasks():
    """Missing is not zero; a new task is the other groups' prediction."""
    part = table().query("agent == 'v1' or domain != 'book'")
    est = estimate(outcomes_from_table(part, group="domain"), by="domain", k=1)
    row = est.summary(columns="all").query("agent == 'v2' and group == 'book' and metric == 'pass^1'")
    observed, new = (row[row["estimand"] == name].iloc[0] for name in ("tasks", "population"))
    assert np.isnan(observed["mean"])
    assert observed["note"] == "nothing was scored in this group"
    assert 0 < new["mean"] < 1
    assert "no_data" in new["flags"]


def test_a_saved_estimate_has_the_same_groups(grouped, tmp_path):
    """Every row of every task is the same to the last bit."""
    again = Estimate.load(grouped.save(tmp_path / "grouped.nc"))
    pd.testing.assert_frame_equal(again.summary(columns="all", tasks=True), grouped.summary(columns="all", tasks=True))
    assert again.settings.by == "domain"
    assert again.settings.weights == WEIGHTS


@pytest.mark.stack
def test_arviz_gets_a_dimension_of_groups(grouped):
    """Draws by group average to the rows of the summary."""
    data = grouped.to_arviz()
    posterior = group(data, "posterior")
    assert group(data, "log_likelihood")["successes"].sizes["cell"] == 24
    assert posterior["mu"].dims == ("chain", "draw", "agent", "group")
    assert posterior["group"].values.tolist() == list(SIZES)
    rows = grouped.summary().query("metric == 'pass^3' and agent == 'v2' and estimand == 'population'")
    mean = rows.set_index("group")["mean"]
    drawn = posterior["pass_pow_k_by_group"].sel(agent="v2", estimand_by_group="population", k=3)
    np.testing.assert_allclose(drawn.mean(("chain", "draw")), mean[list(SIZES)], atol=0.02)
    new = posterior["pass_pow_k_new_group"].sel(agent="v2", k=3)
    assert float(new.mean()) == pytest.approx(mean["(new group)"], abs=0.03)


def test_a_forest_has_a_line_per_group_and_agent(grouped):
    """The title says what the lines are."""
    ax = plot_forest(grouped, of="groups", metric="pass^3")
    assert ax.get_title() == "pass^3 by domain"
    numbers = [text.get_text() for text in ax.texts if "task" in text.get_text()]
    assert len(numbers) == 10  # 2 agents × (3 groups, a new one and the weighted mean)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": "domian"}, "no coordinate 'domian' \\(they have 'domain', 'share'\\)"),
        ({"by": "domain", "method": Hierarchical(inflate=True)}, "cannot be combined with inflate"),
        ({"by": "domain", "method": "hierarchical", "engine": "pymc"}, "by needs engine"),
        ({"by": "domain", "judge_labels": {"sensitivity": 0.9, "specificity": 0.9}}, "cannot be combined with judge"),
        ({"by": "domain", "method": Hierarchical(mu=stats.beta(2, 2), pool_agents=False)}, "give priors of m and tau"),
        ({"weights": {"refund": 1}}, "weights of groups need by"),
        ({"by": "domain", "weights": {"refund": 1}}, "must name every group, 'book', 'cancel' is missing"),
        ({"by": "domain", "weights": WEIGHTS | {"pay": 1}}, "there is no group 'pay'"),
        ({"by": "domain", "weights": WEIGHTS | {"book": -1}}, "share of 'book' must be a number ≥ 0"),
        ({"weights": "domain"}, "must name a column of numbers"),
    ],
)
def test_what_cannot_be_combined_is_refused_with_the_reason(outcomes, options, message):
    """Options without a model, and names and shares that are wrong."""
    with pytest.raises(InvalidArgument, match=message):
        estimate(outcomes, **options)


def test_names_of_agents_and_order_of_rows_change_nothing(outcomes, grouped):
    """Shuffled rows give the same bits."""
    shuffled = table(("v1", "v2")).sample(frac=1, random_state=1)
    again = estimate(
        outcomes_from_table(shuffled, group="domain", weight="share"), "auto", by="domain", weights=WEIGHTS, k=(1, 3)
    )
    pd.testing.assert_frame_equal(again.summary(), grouped.summary())


def test_frequentist_groups_need_no_model(outcomes):
    """A group's estimate is that of its tasks alone, for both estimands."""
    rows = estimate(outcomes, Frequentist(), by="domain", k=1).summary().query("agent == 'v1' and group == 'book'")
    here = (outcomes["domain"] == "book").values
    assert rows["mean"].tolist() == pytest.approx([outcomes["successes"].values[0, here].mean() / 3] * 4)
