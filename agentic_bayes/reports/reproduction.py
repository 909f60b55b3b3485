"""Recompute results from their folder: identical, or which numbers differ and by how much."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from agentic_bayes.errors import AgenticBayesError, InvalidArgument
from agentic_bayes.estimation.engines.diagnostics import Diagnostics, ImportanceDiagnostics
from agentic_bayes.estimation.estimate import Estimate, estimate_as
from agentic_bayes.estimation.fitting import kept_draws
from agentic_bayes.estimation.io.netcdf import installed_versions
from agentic_bayes.estimation.posterior import CHAINS, DRAWS
from agentic_bayes.evidence.csv_text import from_cell
from agentic_bayes.evidence.evidence import Evidence
from agentic_bayes.formatting import format_number, json_ready, one_line, plural
from agentic_bayes.outcomes.count import count_outcomes
from agentic_bayes.records.base import short
from agentic_bayes.reports import results_folder as results
from agentic_bayes.result_table import Table, Tabular

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

__all__ = ["Reproduction", "reproduce"]

ReproductionVerdict = Literal["identical", "agrees", "differs", "not made again"]
ROUNDING = 1e-9  # what is computed without draws agrees to this, whoever computes it
MC_ERRORS = 5.0  # standard errors of two sets of draws; of 1,000 numbers one in 2,000 runs is further off
SHOWN = 5
KEY = ("agent", "task", "estimand", "metric", "estimator")
NUMBERS = ("mean", "sd", "median", "lower", "upper")


@dataclass(frozen=True, slots=True)
class ChangedNumber:
    """A number that came out differently."""

    what: str  # file, row and column, in words
    stored: float  # the number in the folder, and that of the new run
    again: float
    allowed: float  # what rounding or Monte-Carlo error explains

    @property
    def size(self) -> float:
        """How far apart they are; infinite where one of them is undefined."""
        apart = abs(self.stored - self.again)
        return math.inf if math.isnan(apart) else apart

    @property
    def explained(self) -> bool:
        """Whether rounding or Monte-Carlo error accounts for it."""
        return self.size <= self.allowed

    def __str__(self) -> str:
        what, stored, again, apart = self.cells()
        return f"{what}: {stored} stored, {again} recomputed{apart and f', {apart} apart'}"

    def cells(self) -> list[str]:
        """What the number is, both values with enough digits to tell them apart, and how far apart they are."""
        digits = min(max(3, 1 - math.floor(math.log10(self.size))), 17) if 0 < self.size < 1 else 3
        values = [format_number(value, digits) for value in (self.stored, self.again)]
        return [self.what, *values, "" if math.isinf(self.size) else f"{self.size:.2g}"]


@dataclass(frozen=True, repr=False)
class Reproduction(Tabular):
    """Whether results came out the same when they were recomputed.

    Attributes
    ----------
    folder : Path
        The results.
    problems : tuple of str
        Files that changed or are missing, and contradictions between files.
    environment : tuple of str
        Versions and platform that differ from those of the results.
    compared : int
        How many numbers were compared, draws included.
    differences : tuple of ChangedNumber
        Numbers that came out differently: unexplained ones first, then the largest differences.
    why_not : str
        Why nothing was recomputed, or empty.
    """

    folder: Path
    problems: tuple[str, ...]
    environment: tuple[str, ...]
    compared: int
    differences: tuple[ChangedNumber, ...]
    why_not: str = ""

    @property
    def verdict(self) -> ReproductionVerdict:
        """``identical``: no file changed, and every number came out the same to the last bit. ``agrees``: no number
        differs by more than rounding or Monte-Carlo error. ``differs``: one does, or a file changed. ``not made
        again``: the folder does not hold enough.
        """
        if self.why_not:
            return "not made again"
        if self.problems or not all(one.explained for one in self.differences):
            return "differs"
        return "agrees" if self.differences else "identical"

    @property
    def reproduced(self) -> bool:
        """Whether the verdict is ``identical`` or ``agrees``."""
        return self.verdict in ("identical", "agrees")

    def __str__(self) -> str:
        lines = [f"{self.verdict}: {self._sentence()}"]
        lines += [f"  {problem}" for problem in self.problems]
        lines += [f"  {one}" for one in self.differences[:SHOWN]]
        if len(self.differences) > SHOWN:
            lines.append(f"  … and {plural(len(self.differences) - SHOWN, 'more number')}")
        lines += [f"  made with {one}" for one in self.environment]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return one_line(f"Reproduction: {self.verdict}: {self._sentence()}")

    def table(self) -> Table:
        """The numbers that differ; problems and versions as notes."""
        return Table(
            title=self.verdict,
            text=f": {self._sentence()}",
            header=["number", "stored", "recomputed", "apart"],
            rows=[one.cells() for one in self.differences],
            notes=[*self.problems, *(f"made with {one}" for one in self.environment)],
            noun="number",
        )

    def to_pandas(self) -> pd.DataFrame:
        """The numbers that differ.

        Returns
        -------
        pandas.DataFrame
            Columns what, stored, again, allowed, explained.
        """
        import pandas as pd

        rows = [{**asdict(one), "explained": one.explained} for one in self.differences]
        return pd.DataFrame(rows, columns=["what", "stored", "again", "allowed", "explained"])

    def to_dict(self) -> dict[str, Any]:
        """The verdict and all that it rests on, as plain JSON values.

        Returns
        -------
        dict
        """
        fields = asdict(self) | {"folder": str(self.folder)}
        return dict(json_ready({"verdict": self.verdict, "sentence": self._sentence(), **fields}))

    def _sentence(self) -> str:
        if self.why_not:
            return self.why_not
        total = plural(self.compared, "number")
        if not self.differences:
            same = f"{total} recomputed, the same to the last bit"
            return f"{same}, but the folder was changed" if self.problems else same
        worst = max(one.size for one in self.differences)
        unexplained = sum(not one.explained for one in self.differences)
        if unexplained:
            return f"{unexplained:,} of {total} differ by more than rounding or Monte-Carlo error"
        kind = "rounding" if worst <= ROUNDING else "Monte-Carlo error"
        return f"{len(self.differences):,} of {total} differ by at most {worst:.2g}, which is {kind}"


def reproduce(folder: str | Path) -> Reproduction:
    """Recompute results from the data, settings and seed in their folder, and compare; writes nothing.

    Parameters
    ----------
    folder : path
        A folder that `write_results` or ``agentic-bayes estimate -o`` wrote; you may have moved it.

    Returns
    -------
    Reproduction
        Its ``str()`` says what differs.

    Raises
    ------
    InvalidArgument
        If there is no such folder, it does not hold results, its manifest is broken, or another version made it.

    Notes
    -----
    Judgements are data: they are counted again, and no judge is called. Hashes reveal accidental changes; if the
    manifest was rewritten as well, only the numbers can reveal it.
    """
    path = results.folder_path(folder)
    manifest = results.Manifest.read(path)
    settings = None if manifest.cannot_rerun else manifest.parsed_settings()
    problems = _changed_files(path, manifest)
    environment = tuple(_environment(manifest))
    outcomes = _outcomes(path, manifest, problems)
    if settings is None or outcomes is None:
        why_not = manifest.cannot_rerun or "there are no counts to make the estimate from"
        return Reproduction(path, tuple(problems), environment, 0, (), why_not)
    again = estimate_as(outcomes, settings)
    compared, differences = 0, []
    for count, changed in (_compare_tables(path, again, problems), _compare_draws(path, again, problems)):
        compared += count
        differences += changed
    differences.sort(key=lambda one: (one.explained, -one.size))
    return Reproduction(path, tuple(problems), environment, compared, tuple(differences))


def _changed_files(folder: Path, manifest: results.Manifest) -> list[str]:
    """Files that are missing or changed."""
    problems = []
    for name in (results.OUTCOMES, results.ESTIMATE, results.SUMMARY, results.BASELINE):
        if name not in manifest.files and not (name == results.ESTIMATE and manifest.cannot_rerun):
            problems.append(f"{results.MANIFEST} does not name {name}")
    for name, record in manifest.files.items():
        try:
            if results.FileRecord.of(folder / name) != record:
                problems.append(f"{name} was changed after it was written")
        except FileNotFoundError:
            problems.append(f"{name} is missing")
        except (InvalidArgument, OSError) as error:
            problems.append(str(error) if isinstance(error, InvalidArgument) else f"{name}: {error.strerror}")
    return problems


def _environment(manifest: results.Manifest) -> Iterator[str]:
    here = installed_versions()
    for name in dict.fromkeys([*manifest.versions, *here]):
        before, now = str(manifest.versions.get(name, "unknown")), here.get(name, "none")
        if before != now:
            yield f"{name} {before}, here is {now}"
    if manifest.platform != results.this_platform():
        yield f"{manifest.platform}, here is {results.this_platform()}"


def _readable(folder: Path, name: str, manifest: results.Manifest) -> bool:
    """Whether a file of the manifest is there, and in the folder itself."""
    path = folder / name
    return name in manifest.files and path.is_file() and not path.is_symlink()


def _outcomes(folder: Path, manifest: results.Manifest, problems: list[str]) -> xr.Dataset | None:
    """The counts to start from, which those of the evidence and of the saved estimate must equal."""
    sources: dict[str, xr.Dataset] = {}
    try:
        if _readable(folder, results.OUTCOMES, manifest):
            sources[results.OUTCOMES] = results.read_outcomes_file(folder / results.OUTCOMES, manifest.attrs)
    except AgenticBayesError as error:
        problems.append(str(error))
    try:
        if manifest.counting is not None and _readable(folder, results.EVIDENCE, manifest):
            sources[results.EVIDENCE] = count_outcomes(Evidence.read(folder / results.EVIDENCE), **manifest.counting)
    except (AgenticBayesError, TypeError) as error:
        problems.append(f"{results.EVIDENCE} cannot be counted: {error}")
    try:
        if _readable(folder, results.ESTIMATE, manifest):
            sources[results.ESTIMATE] = Estimate.load(folder / results.ESTIMATE).outcomes
            problems += _other_attrs(manifest.attrs, sources[results.ESTIMATE].attrs)
    except AgenticBayesError as error:
        problems.append(str(error))
    if not sources:
        return None
    first, *others = sources
    problems += [
        f"{name} has other counts than {first}, from which the estimate was recomputed"
        for name in others
        if not results.same_counts(sources[first], sources[name])
    ]
    return sources[first]


def _other_attrs(stated: Mapping[str, Any], saved: Mapping[str, Any]) -> Iterator[str]:
    """Where the manifest and the saved estimate disagree on what was counted."""
    for name in sorted(stated.keys() | saved.keys()):
        one, other = (_texts(attrs[name]) if name in attrs else None for attrs in (stated, saved))
        if one != other:
            first, second = ("nothing" if texts is None else short(", ".join(texts)) for texts in (one, other))
            yield f"{results.MANIFEST} says {name} is {first}, {results.ESTIMATE} says {second}"


def _texts(value: Any) -> list[str]:
    """An attribute as JSON and netCDF agree on it: netCDF has arrays for lists, and for a list of one a number."""
    values = np.ravel(np.asarray(value, dtype=object)).tolist()
    return [str(one.item() if isinstance(one, np.generic) else one) for one in values]


def _compare_tables(folder: Path, again: Estimate, problems: list[str]) -> tuple[int, list[ChangedNumber]]:
    """Every number of the two tables; equal text is equal bits, since floats are written in full."""
    compared, differences = 0, []
    for name, text in results.tables_of(again).items():
        path = folder / name
        if not path.is_file() or path.is_symlink():
            continue  # reported already
        try:
            mine = _cells(text)
            with path.open(encoding="utf-8", errors="surrogatepass", newline="") as stream:
                stored = _cells(stream.read())
        except (csv.Error, ValueError) as error:
            problems.append(f"{name} cannot be read: {error}")
            continue
        lost, new = len(mine.keys() - stored.keys()), len(stored.keys() - mine.keys())
        if lost or new:
            problems.append(f"{name} lacks {plural(lost, 'row')} and has {new:,} too many")
        for key in mine.keys() & stored.keys():
            for column in NUMBERS:
                compared += 1
                before, now = stored[key].get(column, ""), mine[key][column]
                if before != now:
                    what = f"{name}, {_words(key)}, {column}"
                    allowed = _allowed(again, mine[key], column) if name == results.SUMMARY else ROUNDING
                    differences.append(ChangedNumber(what, _number(before), _number(now), allowed))
    return compared, differences


def _cells(text: str) -> dict[tuple[str, ...], dict[str, str]]:
    rows = csv.DictReader(io.StringIO(text, newline=""), restval="")
    return {tuple(from_cell(row.get(name) or "") for name in KEY): row for row in rows}


def _words(key: tuple[str, ...]) -> str:
    agent, task, estimand, metric, estimator = key
    who = f"{agent}, task {task}" if task else f"{agent} ({estimand})"
    return f"{who}, {metric}" + ("" if estimator == "posterior" else f" {estimator}")


def _number(text: str) -> float:
    try:
        return float(text) if text else math.nan
    except ValueError:
        return math.nan


def _allowed(again: Estimate, row: dict[str, str], column: str) -> float:
    """What rounding explains, or Monte-Carlo error where draws were made: as of normal draws with this sd."""
    exact = again.draws is None and (row["estimand"] == "population" or column in ("mean", "sd"))
    sd = _number(row["sd"])
    if exact or math.isnan(sd):
        return ROUNDING
    tail = (1 - float(row["ci_prob"])) / 2
    errors = {"mean": 1.0, "sd": math.sqrt(0.5), "median": _quantile_error(0.5)}
    error = errors.get(column, _quantile_error(tail))
    return max(ROUNDING, MC_ERRORS * error * sd * math.sqrt(2 / _effective_draws(again)))


def _quantile_error(probability: float) -> float:
    """Standard error of a quantile of one standard normal draw."""
    from scipy.special import ndtri

    z = float(ndtri(probability))
    return math.sqrt(probability * (1 - probability) * 2 * math.pi) * math.exp(z * z / 2)


def _effective_draws(est: Estimate) -> float:
    most = float(CHAINS * DRAWS)
    match est.diagnostics:
        case Diagnostics() as account:
            return max(1.0, min(account.ess_bulk, account.ess_tail, most))
        case ImportanceDiagnostics() as account:
            return max(1.0, min(account.ess, most))
        case _:
            return most


def _compare_draws(folder: Path, again: Estimate, problems: list[str]) -> tuple[int, list[ChangedNumber]]:
    """The draws of the saved estimate: bit by bit, and where that fails by their means."""
    path = folder / results.ESTIMATE
    if not path.is_file() or path.is_symlink():
        return 0, []
    from agentic_bayes.estimation.io.netcdf import read_groups

    try:
        record, groups = read_groups(path)
        settings = record["settings"]
    except (AgenticBayesError, LookupError, OSError, RuntimeError, TypeError, ValueError):
        return 0, []  # reported already
    if settings != json.loads(json.dumps(again.settings.record())):
        problems.append(f"{results.ESTIMATE} was made with other settings than {results.MANIFEST} says")
    mine, stored = kept_draws(again.draws, again.posterior), groups.get("draws")
    if mine is None or stored is None:
        if (mine is None) != (stored is None):
            which = "lacks the recomputed draws" if stored is None else "holds draws, but none were recomputed"
            problems.append(f"{results.ESTIMATE} {which}")
        return 0, []
    compared, differences = 0, list[ChangedNumber]()
    for name in map(str, mine.data_vars):
        here = _by_draw(mine[name])
        compared += here.size
        there = _by_draw(stored[name]) if name in stored else None
        if there is None or there.shape != here.shape:
            problems.append(f"{results.ESTIMATE} has other draws of {name}")
        elif not np.array_equal(here, there, equal_nan=True):
            weights = [ds["weight"].values if "weight" in ds else None for ds in (stored, mine)]
            differences += _draw_differences(name, there, here, weights, again)
    return compared, differences


def _by_draw(variable: xr.DataArray) -> Any:
    """Shape (draws,) or (draws, agents), chains one after another."""
    leading = [dim for dim in variable.dims if dim != "agent"]
    values = variable.transpose(*leading, ...).values
    return values.reshape(-1, *values.shape[len(leading) :])


def _draw_differences(
    name: str, stored: Any, mine: Any, weights: list[Any], again: Estimate
) -> Iterator[ChangedNumber]:
    """One difference per agent: the largest of single draws where these are the same draws, else of the means."""
    apart = np.abs(mine - stored)
    if np.nanmax(apart) <= ROUNDING:
        where = np.unravel_index(np.nanargmax(apart), apart.shape)
        yield ChangedNumber(f"{results.ESTIMATE}, draws of {name}", float(stored[where]), float(mine[where]), ROUNDING)
        return
    before, now = (values.reshape(len(values), -1).T for values in (stored, mine))
    for i in range(len(now)):
        who = f" of {again.agents[i]}" if mine.ndim == 2 else ""
        allowed = MC_ERRORS * float(np.std(now[i])) * math.sqrt(2 / _effective_draws(again))
        what = f"{results.ESTIMATE}, mean of the draws of {name}{who}"
        then, today = (float(np.average(side[i], weights=w)) for side, w in zip((before, now), weights, strict=True))
        yield ChangedNumber(what, then, today, max(ROUNDING, allowed))
