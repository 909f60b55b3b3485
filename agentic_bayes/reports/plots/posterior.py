"""The posterior of one metric, and its prior."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from agentic_bayes.checks import check_probability, check_text, check_type
from agentic_bayes.errors import EstimateError
from agentic_bayes.estimation.distribution import Distribution, Stats
from agentic_bayes.estimation.estimate import Estimate, estimate
from agentic_bayes.estimation.posterior import Estimand
from agentic_bayes.formatting import Metric, equals, format_estimate, format_interval, format_share
from agentic_bayes.reports.plots import style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["plot_posterior", "plot_prior"]

MOST_OVERLAID = 3  # densities in one place; more stand one above the other
MOST_RIDGES = 40
FINE = 4000  # cells in which draws are counted before they are smoothed


def density(draws: Any, points: int = 400, *, within: tuple[float, float] = (0.0, 1.0)) -> tuple[Any, Any]:
    """Kernel density of draws in an interval, reflected at both ends so that no mass leaks out."""
    from scipy.ndimage import gaussian_filter1d

    draws = np.asarray(draws, dtype=np.float64)
    spread = max(float(np.ptp(draws)), 1e-6)
    low, high = max(within[0], draws.min() - 0.15 * spread), min(within[1], draws.max() + 0.15 * spread)
    x = np.linspace(low, high, points)
    deviation = float(np.std(draws))
    if deviation < 1e-12:
        return x, np.zeros(points)
    mass, edges = np.histogram(draws, bins=FINE, range=(low, high))
    step = edges[1] - edges[0]
    width = deviation * draws.size**-0.2  # Scott's rule
    fine = gaussian_filter1d(mass / (draws.size * step), width / step, mode="reflect")
    return x, np.interp(x, (edges[:-1] + edges[1:]) / 2, fine)


def _curve(distribution: Distribution) -> tuple[Any, Any]:
    """The density to draw: exact where it is known, else smoothed draws."""
    return distribution.density() or density(distribution.draws())


def posterior_size(agents: int) -> tuple[float, float]:
    """Inches that `plot_posterior` takes for so many agents."""
    return (8.0, 4.6 + 0.3 * agents) if agents <= MOST_OVERLAID else (11.0, 2.4 + 0.42 * agents)


def plot_posterior(
    est: Estimate,
    *,
    metric: str = "pass^1",
    estimand: Estimand = "population",
    agents: Sequence[str] | None = None,
    ref_val: float | None = None,
    rope: float | tuple[float, float] | None = None,
    ax: Axes | None = None,
    colors: Sequence[str] | Mapping[str, str] | None = None,
    title: str | None = None,
) -> Axes:
    """Posterior density of one metric, one curve per agent, with mean and interval.

    Parameters
    ----------
    est : Estimate
        An estimate with a posterior.
    metric : str
        "pass@k" or "pass^k" with a number, for example "pass^3".
    estimand : {"population", "tasks"}
        A new task of this kind, or the mean over the observed tasks.
    agents : sequence of str, optional
        Agents to show, in this order, at most 40. Default: all, of more than two the best first. Up to three share
        the axes; more are stacked.
    ref_val : float, optional
        A bar to clear, in [0, 1]; the legend gives the probability of reaching it, as `gate` does.
    rope : float or (float, float), optional
        A region of the metric to shade, whose probability is given: a half-width around `ref_val`, or (lower, upper).
    ax : matplotlib.axes.Axes, optional
        Axes to draw on.
    colors : sequence of str or mapping of str to str, optional
        Colours that matplotlib knows: one for each agent shown, or agent → colour.
    title : str, optional
        Instead of "Posterior of …".

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    EstimateError, UnknownName, InvalidArgument
        As `Estimate.metric_draws`, or if `ref_val` or `rope` is not valid, or there are more than 40 agents.
    """
    check_type("est", est, Estimate, "estimate() makes one")
    if ref_val is not None:
        ref_val = check_probability(ref_val, "ref_val")
    region = None if rope is None else style.check_region(rope, ref_val)
    wanted, chosen = Metric(metric), style.chosen_agents(est, agents)
    colours = style.agent_colours(est, chosen, colors)
    if title is not None:
        check_text("title", title)
    if len(chosen) > MOST_RIDGES:
        raise EstimateError(
            f"at most {MOST_RIDGES} densities can be told apart, got {len(chosen)} agents: name some in agents=[…], "
            "or see them in plot_forest"
        )
    s = est.settings
    known = {agent: est.distribution(agent, metric=wanted, estimand=estimand) for agent in chosen}
    stats = {agent: one.stats(s.ci_prob, s.ci_kind) for agent, one in known.items()}  # the numbers of `summary`
    if agents is None:
        chosen = style.best_first(chosen, {agent: float(own.mean) for agent, own in stats.items()})
    curves = {agent: _curve(known[agent]) for agent in chosen}
    texts = {}
    for agent, one in known.items():
        flags = est.flags(agent, metric=wanted, estimand=estimand)
        texts[agent] = _legend_text(one, stats[agent], flags, ref_val, region)
    width, height = posterior_size(len(chosen))
    further = sum(text.count("\n") for text in texts.values()) if len(chosen) <= MOST_OVERLAID else 0
    ax = style.axes_for(ax, (width, height + 0.25 * further))
    entries: list[style.LegendEntry] = []
    if region is not None:
        band = ax.axvspan(*region, color=style.GREY, alpha=0.15, linewidth=0)
        entries.append((band, f"region {format_interval(*region, digits=2)}"))
    draw = _overlaid if len(chosen) <= MOST_OVERLAID else _ridges
    entries += draw(ax, curves, stats, texts, colours)
    if ref_val is not None:
        line = ax.axvline(ref_val, color=style.GREY, linestyle=":", linewidth=2)
        entries.append((line, f"reference {ref_val:g}"))
    style.name_axes(ax, x=f"{wanted}: probability {style.WORDS[estimand]}")
    style.heading(ax, f"Posterior of {wanted}" if title is None else title, below=style.described(est), entries=entries)
    return ax


def _legend_text(
    one: Distribution, stats: Stats, flags: tuple[str, ...], ref_val: float | None, region: tuple[float, float] | None
) -> str:
    """Mean and interval, the probabilities of bar and region, and what makes the numbers doubtful."""
    text = format_estimate(stats.mean, stats.lower, stats.upper)
    if ref_val is not None:
        text += f", P(≥ {ref_val:g}) {equals(format_share(one.at_least(ref_val)))}"
    if region is not None:
        separator = ", " if ref_val is None else "\n"
        inside = max(one.at_least(region[0]) - one.at_least(region[1]), 0.0)
        text += f"{separator}P(region) {equals(format_share(inside))}"
    return f"{text}\n({', '.join(flags)})" if flags else text


def _overlaid(
    ax: Axes,
    curves: dict[str, tuple[Any, Any]],
    stats: dict[str, Stats],
    texts: dict[str, str],
    colours: dict[str, str],
) -> list[style.LegendEntry]:
    """Densities in one place; intervals hang below them, one line each."""
    top = max(float(y.max()) for _, y in curves.values()) or 1.0
    entries: list[style.LegendEntry] = []
    for i, (agent, name) in enumerate(zip(curves, style.distinct_names(tuple(curves), 30), strict=True)):
        colour, one = colours[agent], stats[agent]
        x, y = curves[agent]
        (line,) = ax.plot(x, y, color=colour, linewidth=2, linestyle=style.LINES[i])
        ax.fill_between(x, y, color=colour, alpha=0.15, linewidth=0)
        height = -top * 0.055 * (i + 1)
        ax.plot([one.lower, one.upper], [height, height], color=colour, linewidth=4, solid_capstyle="butt")
        ax.plot(one.mean, height, style.MARKERS[i], color=colour, markersize=8, markeredgecolor="white")
        entries.append((line, f"{name}: {texts[agent]}"))
    style.quiet(ax, grid="")
    ax.spines["left"].set_visible(False)
    ax.set(yticks=[], ylim=(-top * 0.055 * (len(curves) + 1.2), top * 1.08))
    return entries


def _ridges(
    ax: Axes,
    curves: dict[str, tuple[Any, Any]],
    stats: dict[str, Stats],
    texts: dict[str, str],
    colours: dict[str, str],
) -> list[style.LegendEntry]:
    """One density per line, each as high as the line, with its name next to it."""
    for i, (agent, (x, y)) in enumerate(curves.items()):
        one, colour = stats[agent], colours[agent]
        foot = np.full(len(x), float(-i))
        crest = foot + 0.85 * np.asarray(y) / (float(np.max(y)) or 1.0)
        ax.fill_between(x, foot, crest, color=colour, alpha=0.25, linewidth=0)
        ax.plot(x, crest, color=colour, linewidth=1.2)
        ax.plot([one.lower, one.upper], [-i, -i], color=colour, linewidth=4, solid_capstyle="butt")
        ax.plot(one.mean, -i, "o", color=colour, markersize=7, markeredgecolor="white")
        if style.has_room(ax):
            text = texts[agent].replace("\n", ", ")
            style.write(ax, 1.02, -i, text, size=style.TEXT - 2, transform=ax.get_yaxis_transform())
    style.quiet(ax, grid="")
    ax.set_yticks(range(0, -len(curves), -1), style.distinct_names(tuple(curves)), **style.LITERAL)
    ax.set_ylim(-len(curves) + 0.4, 1.05)
    ax.tick_params(axis="y", length=0)
    return []


def plot_prior(est: Estimate, *, agent: str | None = None, metric: str = "pass^1", ax: Axes | None = None) -> Axes:
    """What was assumed and what was learned: prior and posterior density of one metric of one agent.

    Parameters
    ----------
    est : Estimate
        An estimate with a posterior.
    agent : str, optional
        Agent to draw; not needed if there is only one.
    metric : str
        "pass@k" or "pass^k" with a number, for example "pass^3".
    ax : matplotlib.axes.Axes, optional
        Axes to draw on.

    Returns
    -------
    matplotlib.axes.Axes

    Raises
    ------
    EstimateError, UnknownName, InvalidArgument
        As `Estimate.metric_draws`.

    Notes
    -----
    The prior is the same method's estimate for the same agents before anything is scored. Both densities are those of
    a new task of this kind, since a prior knows no observed tasks.
    """
    check_type("est", est, Estimate, "estimate() makes one")
    name = est.agents[est.agent_index(agent)]
    wanted = Metric(metric)
    posterior = est.distribution(name, metric=wanted)
    curve = _curve(posterior)  # refuses a method without a posterior before anything is fitted
    prior = _before_data(est, name).distribution(name, metric=wanted)
    ax = style.axes_for(ax, (8.0, 5.0))
    entries: list[style.LegendEntry] = []
    drawn = {"prior": (prior, *_curve(prior)), "posterior": (posterior, *curve)}
    own = style.agent_colours(est, [name])[name]
    for i, (word, (one, x, y)) in enumerate(drawn.items()):
        colour, line = ((style.GREY, "--"), (own, "-"))[i]
        ax.fill_between(x, y, color=(style.PALE, colour)[i], alpha=(0.5, 0.2)[i], linewidth=0)
        (artist,) = ax.plot(x, y, color=colour, linestyle=line, linewidth=2)
        stats = one.stats(est.settings.ci_prob, est.settings.ci_kind)
        entries.append((artist, f"{word}: {format_estimate(stats.mean, stats.lower, stats.upper)}"))
    style.quiet(ax, grid="")
    ax.spines["left"].set_visible(False)
    # a prior may be infinite at an end: the posterior sets the scale
    highest = max(float(drawn["posterior"][2].max()), float(np.quantile(drawn["prior"][2], 0.9)))
    ax.set(yticks=[], xlim=(0, 1), ylim=(0, 1.12 * highest or 1.0))
    style.name_axes(ax, x=f"{wanted}: probability {style.WORDS['population']}", y="density")
    style.heading(
        ax,
        f"Prior and posterior of {wanted}: {style.agent_name(est, est.agent_index(name))}",
        below=style.described(est),
        entries=entries,
    )
    return ax


def _before_data(est: Estimate, agent: str) -> Estimate:
    """The estimate before anything was scored."""
    others = [name for name in est.agents if name != agent]
    # one more agent keeps what is shared between agents; all further ones would change nothing
    empty = est.outcomes.sel(agent=[agent, *others[:1]]).isel(task=slice(0, 1)).copy(deep=True)
    for name in empty.data_vars:
        empty[name] = empty[name] * 0
    empty["unscored"] = empty["unscored"] + 1
    s = est.settings
    return estimate(empty, s.method, k=s.k, ci_prob=s.ci_prob, ci_kind=s.ci_kind, random_seed=s.random_seed)
