"""Arguments and options that several commands have, each declared once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

from typer import Argument, Option

from agentic_bayes.cli.output import OutputFormat
from agentic_bayes.errors import InvalidArgument

if TYPE_CHECKING:
    from agentic_bayes.evidence.tools.rubric import ToolRubric
    from agentic_bayes.records.read import Conversations

ESTIMANDS = "Estimate for new tasks like these (population) or for the tasks that were run (tasks)."
KS = "Values of k, comma-separated."
TASK_SETS = "Agents that tried different tasks: compare on the tasks they share (shared) or on each one's own (own)."
SEED = "Random seed, for reproducible results."
SEED_0 = "Random seed, for reproducible results (default: 0)."
CONVERSATIONS = "Conversation files, folders or globs (JSON, JSONL, .gz, .eval)"
INPUT = (
    "Outcomes (CSV or TSV), evidence (JSONL), results of another tool (promptfoo, …; a file or a folder), a saved "
    "estimate (.nc, or the folder of estimate -o) or a suite run (folder or id)."
)

ConversationFiles = Annotated[list[str], Argument(metavar="FILES", help=f"{CONVERSATIONS}.")]
InputFile = Annotated[str, Argument(metavar="FILE", help=INPUT)]
StoreFile = Annotated[Path, Argument(metavar="STORE", help="Cache file written by assess --store.")]
RubricFile = Annotated[Path | None, Option("--tool-rubric", help="Tool rubric settings (JSON).")]
OutputFolder = Annotated[Path | None, Option("-o", "--output", help="Folder to write the results to.")]
To = Annotated[OutputFormat | None, Option("--to", help="Output format (default: plain text).")]
ToJson = Annotated[Literal["json"] | None, Option("--to", help="Output format (default: plain text).")]
Ks = Annotated[str, Option("--k", help=KS)]
ExecutorName = Annotated[
    str | None,
    Option("--executor", help="Where to compute: local:N for N processes, dask://HOST:PORT for a Dask cluster."),
]
SplitColumns = Annotated[
    str | None,
    Option(
        "--split", help="Columns of a table, comma-separated: estimate each combination of their values separately."
    ),
]
RandomSeed = Annotated[int, Option("--random-seed", help=SEED)]
DecidedAgent = Annotated[str | None, Option("--agent", help="The agent; only needed if there are several.")]
MetricName = Annotated[str, Option("--metric", help="Metric, for example pass^3 or pass@1.")]
TaskSetsOption = Annotated[str, Option("--tasks", help=TASK_SETS)]
VerdictConfidence = Annotated[
    float, Option("--confidence", help="Pass if P(metric ≥ bar) ≥ this; fail if P(metric < bar) ≥ this.")
]
CI_PROB = "Probability of the intervals (default: 0.95)."
CI_KIND = "Type of interval: eti (equal-tailed, the default) or hdi (highest density)."


def _fitting(help: str) -> Any:
    return Option(help=help, rich_help_panel="Fitting options")


def _reading(help: str) -> Any:
    return Option(help=help, rich_help_panel="Reading options")


@dataclass(frozen=True, kw_only=True)
class ScoreOptions:
    """Which score of a file counts, and on what scale."""

    scorer: Annotated[str | None, _reading("The score that counts, if the files have several.")] = None
    scale: Annotated[str | None, _reading("The lowest and the highest score: 1,10 (default: 0,1).")] = None

    def scoring(self) -> dict[str, Any]:
        """What was given, as the functions that read scores take it."""
        return given(scorer=self.scorer, scale=parse_scale(self.scale))


@dataclass(frozen=True, kw_only=True)
class LogOptions(ScoreOptions):
    """What conversation files do not say in the usual place."""

    fields: Annotated[
        str | None,
        Option(
            help="Where to find agent, task, trial, session or reference in a record: task=metadata.task, more after "
            "commas (describe proposes them)."
        ),
    ] = None
    skip_bad: Annotated[bool, Option("--skip-bad", help="Leave out records that cannot be read, and count them.")] = (
        False
    )

    max_ratio: Annotated[
        float | None,
        Option(help="Largest ratio of unpacked to packed size, for files above 64 MiB (default: 200)."),
    ] = None

    def options(self) -> dict[str, Any]:
        """What was given, as `read_conversations` takes it."""
        fields = None if self.fields is None else parse_fields(self.fields)
        return given(fields=fields, max_ratio=self.max_ratio) | self.scoring()


@dataclass(frozen=True, kw_only=True)
class RecordOptions(LogOptions):
    """How conversation files are read."""

    format: Annotated[
        str, Option(help="File format: auto (by content), or its name in docs/formats.md, like openai or otel.")
    ] = "auto"
    agent: Annotated[
        str | None, Option(help="Agent name for files that do not contain one (default: the file's name).")
    ] = None


@dataclass(frozen=True, kw_only=True)
class ConversationOptions(RecordOptions):
    """The same, with references and expectations from other files."""

    references: Annotated[
        Path | None,
        Option(help="Reference answers: a table with columns task and reference, or JSON that maps tasks to them."),
    ] = None

    expected_tools: Annotated[
        Path | None, Option(help="Expected tool calls: a table, or JSON that maps tasks to lists of calls.")
    ] = None

    replace: Annotated[
        bool, Option("--replace", help="Replace references and expected tool calls that the files have already.")
    ] = False

    def read(self, files: list[str]) -> Conversations:
        """The conversations in the files."""
        from agentic_bayes.evidence.joins.expected_tools import join_expected_tools
        from agentic_bayes.evidence.joins.references import join_references
        from agentic_bayes.records.read import Conversations, read_conversations

        on_error: Any = "skip" if self.skip_bad else "raise"
        format: Any = self.format
        found = read_conversations(files, format=format, agent=self.agent, on_error=on_error, **self.options())
        for path, join in ((self.references, join_references), (self.expected_tools, join_expected_tools)):
            if path is not None:
                found = Conversations(join(found, path, replace=self.replace), found.left_out)
        return found


@dataclass(frozen=True, kw_only=True)
class OutcomeOptions(ScoreOptions):
    """How outcomes are read from a table, or counted from evidence or results of another tool."""

    columns: Annotated[str | None, _reading("For a table, its column names: agent=model,task=id,correct=ok.")] = None
    wide: Annotated[
        str | None, _reading("For a wide table with one row per task: its other columns are trials, or agents.")
    ] = None
    unit: Annotated[
        str | None,
        _reading("For evidence, what counts as a trial: conversation (the default), interaction or question."),
    ] = None
    indicator: Annotated[
        str | None,
        _reading("For evidence, what must be correct: answer (the default), tools, joint (both) or a metric's name."),
    ] = None
    threshold: Annotated[
        float | None,
        _reading(
            "Minimum score to count as correct: for evidence, of an answer (default: 0.7); for a table, of its scores."
        ),
    ] = None
    tool_threshold: Annotated[
        float | None, _reading("For evidence, minimum score for tool use to count as correct (default: 1.0).")
    ] = None
    errors: Annotated[
        str | None,
        _reading("Count trials whose agent crashed as unscored (the default), as fail, or both ways (bounds)."),
    ] = None

    fields: Annotated[
        str | None,
        _reading(
            "For results of another tool, where to find agent, task or trial: task=metadata.case; agent={parent} "
            "is the name of the file's folder, {stem} that of the file."
        ),
    ] = None
    group: Annotated[
        str | None, _reading("Group of each task: for evidence a field, metadata.domain; for a table a column.")
    ] = None
    weight: Annotated[
        str | None, _reading("Weight of each task: for evidence a field, metadata.share; for a table a column.")
    ] = None

    def reading(self, fit: FitOptions | None = None) -> dict[str, Any]:
        """What was given, as the functions that read FILE take it; a table is also read for what `fit` needs of it."""
        counting = self.counting()
        needed = {} if fit is None else {"group": fit.by, "weight": fit.weights_column}
        columns = self._columns() | given(group=self.group, weight=self.weight, wide=self.wide)
        return {"columns": columns, "counting": counting, "needed": given(**needed), "results": self.scoring()}

    def typed(self) -> list[str]:
        """What was given, as it was typed."""
        return [
            word for name, value in given(**vars(self)).items() for word in (f"--{name.replace('_', '-')}", str(value))
        ]

    def opening(self) -> dict[str, Any]:
        """What was given, as `open_input` takes it."""
        return {"columns": self._columns(), "results": self.scoring()}

    def scoring(self) -> dict[str, Any]:
        """What was given, as `evidence_from_results` takes it; an agent in braces is a rule, not a field."""
        found = {} if self.fields is None else parse_fields(self.fields)
        rule = found.pop("agent") if "{" in found.get("agent", "") else None
        return super().scoring() | given(fields=found or None, agent=rule)

    def counting(self) -> dict[str, Any]:
        """The arguments of `count_outcomes` that were given."""
        rules = given(**vars(self) | dict.fromkeys(("columns", "wide", "scorer", "scale", "fields")))
        if "threshold" in rules and (indicator := self.indicator) is not None:
            from agentic_bayes.outcomes.count import INDICATORS

            if indicator not in INDICATORS:
                raise InvalidArgument(
                    f"--threshold applies to answers; {indicator} has its own threshold (assess --metrics "
                    f"{indicator}=0.3)"
                )
        return rules

    def _columns(self) -> dict[str, str]:
        pairs = [part.partition("=") for part in self.columns.split(",")] if self.columns else []
        allowed = ("agent", "task", "trial", "correct", "successes", "trials", "error")
        if any(name.strip() not in allowed or not column.strip() for name, _, column in pairs):
            raise InvalidArgument(
                f"--columns must be like agent=model,task=id; names: {', '.join(allowed)}; got {self.columns!r}"
            )
        return {name.strip(): column.strip() for name, _, column in pairs}


@dataclass(frozen=True, kw_only=True)
class EvidenceOptions(OutcomeOptions):
    """The same, where all agents may be counted as one."""

    agents: Annotated[
        str | None, _reading("For evidence, keep agents separate (the default) or count them together.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class QuestionOptions:
    """What is asked of an estimate."""

    metric: MetricName = "pass^1"
    estimand: Annotated[str, Option(help=ESTIMANDS)] = "population"

    def checked(self) -> dict[str, Any]:
        """Both, as the functions that decide take them."""
        from agentic_bayes.checks import check_choice
        from agentic_bayes.formatting import Metric

        check_choice("estimand", self.estimand, ("population", "tasks"))
        return {"metric": Metric(self.metric), "estimand": self.estimand}


@dataclass(frozen=True, kw_only=True)
class FitOptions:
    """How an estimate is made; a saved one is used as it is, except for what is given here."""

    method: Annotated[
        str | None,
        _fitting("Method: auto (the default), hierarchical, crossed, conjugate or (estimate only) frequentist."),
    ] = None
    ci_prob: Annotated[float | None, _fitting(CI_PROB)] = None
    ci_kind: Annotated[str | None, _fitting(CI_KIND)] = None
    random_seed: Annotated[int | None, _fitting(SEED_0)] = None
    by: Annotated[str | None, _fitting("Column, or field of the metadata of evidence, that groups the tasks.")] = None
    weights: Annotated[
        str | None, _fitting("Shares of the groups, refund=0.7,cancel=0.3, or a column that weighs the tasks.")
    ] = None
    judge_labels: Annotated[
        Path | None,
        _fitting(
            "Human labels, to allow for the judge's errors: a table with columns judge, human (0/1) and, if known, "
            "agent, task, trial."
        ),
    ] = None

    @property
    def weights_column(self) -> str | None:
        """The column that `weights` names, if it does."""
        found = parse_weights(self.weights)
        return found if isinstance(found, str) else None

    def settings(self) -> dict[str, Any]:
        """The arguments of `estimate` that were given."""
        settings = dict(vars(self)) | {"weights": parse_weights(self.weights)}
        if self.judge_labels is not None:
            import pandas as pd

            from agentic_bayes.evidence.table import read_columns

            _, columns = read_columns(self.judge_labels, error=InvalidArgument)
            settings["judge_labels"] = pd.DataFrame(dict(columns), dtype=object)
        return given(**settings)


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """A command for Typer: each parameter that is a dataclass of options becomes the options in it."""
    hints = get_type_hints(command, include_extras=True)
    groups = {name: kind for name, kind in hints.items() if isinstance(kind, type) and is_dataclass(kind)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        parts = [(name, hints[name], parameter.default)]
        if name in groups:
            options = get_type_hints(groups[name], include_extras=True)
            parts = [(option.name, options[option.name], option.default) for option in fields(groups[name])]
        parameters += [
            inspect.Parameter(part, inspect.Parameter.KEYWORD_ONLY, annotation=kind, default=default)
            for part, kind, default in parts
            if part not in {earlier.name for earlier in parameters}  # two groups may share an option
        ]

    def flat(**values: Any) -> None:
        made = {name: kind(**{opt.name: values[opt.name] for opt in fields(kind)}) for name, kind in groups.items()}
        grouped = {option.name for kind in groups.values() for option in fields(kind)}
        command(**{name: value for name, value in values.items() if name not in grouped}, **made)

    flat.__name__, flat.__doc__, flat.__module__ = command.__name__, command.__doc__, command.__module__
    flat.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    flat.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return flat


def read_rubric(path: Path | None) -> ToolRubric:
    """The tool rubric in a file; the default one without a file."""
    from agentic_bayes.evidence.tools.rubric import ToolRubric

    return ToolRubric() if path is None else ToolRubric.from_file(path)


def given(**options: Any) -> dict[str, Any]:
    """The options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def parse_ks(text: str, option: str = "--k") -> tuple[int, ...]:
    """Read "1,3,5"."""
    from agentic_bayes.checks import check_ks

    try:
        ks = tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InvalidArgument(f'{option} must be whole numbers ≥ 1, for example "1,3,5", got {text!r}') from None
    return check_ks(ks)


def parse_weights(text: str | None) -> dict[str, float] | str | None:
    """Read "refund=0.7,cancel=0.3", or the name of a column."""
    if text is None or "=" not in text:
        return text
    pairs = [part.rpartition("=") for part in text.split(",")]
    shares = {name.strip(): parse_number(value) for name, _, value in pairs}
    if len(shares) < len(pairs) or any(not name or share is None for name, share in shares.items()):
        raise InvalidArgument(f'--weights must be like "refund=0.7,cancel=0.3", each group once, got {text!r}')
    return {name: share for name, share in shares.items() if share is not None}


def parse_fields(text: str) -> dict[str, str]:
    """Read "agent=metadata.version,task=metadata.task"."""
    pairs = [part.partition("=") for part in text.split(",")]
    found = {name.strip(): path.strip() for name, _, path in pairs}
    if len(found) < len(pairs) or not all(sign for _, sign, _ in pairs):
        raise InvalidArgument(f'--fields must be like "agent=metadata.version,task=metadata.task", got {text!r}')
    return found


def parse_scale(text: str | None) -> tuple[float, float] | None:
    """Read "1,10"."""
    if text is None:
        return None
    match [parse_number(part) for part in text.split(",")]:
        case [float(low), float(high)] if low < high:
            return low, high
    raise InvalidArgument(f'--scale must be the lowest and the highest score, for example "1,10", got {text!r}')


def parse_number(text: str | None) -> float | None:
    """The number that a text is, if it is one."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return None


def parse_rope(text: str) -> float | tuple[float, float]:
    """Read "0.02", the half-width, or "-0.01,0.05"."""
    match [parse_number(part) for part in text.split(",")]:
        case [float(half_width)]:
            return half_width
        case [float(low), float(high)]:
            return low, high
    raise InvalidArgument(f"--rope must be a number or LOW,HIGH, got {text!r}")
