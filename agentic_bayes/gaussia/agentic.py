"""The `Agentic` façade: judge conversations and return one `AgenticMetric` per conversation, as Gaussia does."""

from __future__ import annotations

import contextlib
import logging
import warnings
from collections.abc import Iterable, Iterator, Mapping
from inspect import isawaitable
from typing import TYPE_CHECKING

from agentic_bayes.checks import check_count, check_flag, check_probability
from agentic_bayes.errors import InvalidArgument, NothingScored, UnknownName
from agentic_bayes.evidence.assess import assess
from agentic_bayes.evidence.llm.calls import RUN
from agentic_bayes.evidence.llm.judge import LLMJudge
from agentic_bayes.evidence.score import Grade, Grader, Score
from agentic_bayes.evidence.tools.rubric import ToolRubric
from agentic_bayes.formatting import plural
from agentic_bayes.gaussia.result import AgenticResult, AgenticSettings, BayesianMode, FrequentistMode, StatisticalMode
from agentic_bayes.records.base import short
from agentic_bayes.records.model import Conversation, Retriever

if TYPE_CHECKING:
    from agentic_bayes.evidence.llm.judge import ChatModel

_LOGGER = logging.getLogger("agentic_bayes")


class Agentic:
    """Judges conversations and estimates their reliability; see `run`."""

    @classmethod
    def run(
        cls,
        retriever: type[Retriever] | Retriever,
        *,
        model: ChatModel | str,
        k: int = 3,
        threshold: float = 0.7,
        tool_threshold: float = 1.0,
        tool_weights: Mapping[str, float] | None = None,
        statistical_mode: StatisticalMode = FrequentistMode(),  # noqa: B008 - frozen
        use_structured_output: bool = True,
        require_tools: bool = False,
        verbose: bool = False,
        **unknown: object,
    ) -> AgenticResult:
        """Judge every turn, score the tool calls, and estimate pass@k and pass^k per conversation.

        Parameters
        ----------
        retriever : Retriever class or instance
            Its ``load_dataset()`` gives the conversations, as a list or a generator.
        model : langchain_core.language_models.BaseChatModel or str
            The judge's model, or its name as for `LLMJudge`.
        k : int
            Number of attempts, ≥ 1.
        threshold : float
            Minimum judge score for an answer to count as correct, in [0, 1].
        tool_threshold : float
            Minimum overall score for a tool verdict to count as correct, in [0, 1].
        tool_weights : mapping, optional
            Weights of ``selection``, ``parameters``, ``sequence`` and ``utilization``.
        statistical_mode : FrequentistMode or BayesianMode
            How the pass values are computed.
        use_structured_output : bool
            Ask for the verdict through the provider's structured output; otherwise as JSON in text.
        require_tools : bool
            Whether a turn counts as correct only if its tool verdict, if it has one, is correct too.
        verbose : bool
            Log every judgement on the logger "agentic_bayes".

        Returns
        -------
        AgenticResult
            One `AgenticMetric` per conversation, in the order of the retriever.

        Raises
        ------
        InvalidArgument
            If an argument is invalid or unknown; then nothing was loaded or judged.
        EvidenceError, RecordsError
            If there are no conversations, or they contradict each other; then nothing was judged.
        """
        if unknown:
            raise UnknownName("argument", next(iter(unknown)), _ARGUMENTS)
        if not isinstance(statistical_mode, (FrequentistMode, BayesianMode)):
            raise InvalidArgument(
                f"statistical_mode must be FrequentistMode() or BayesianMode(), got {short(statistical_mode)}"
            )
        settings = AgenticSettings(
            k=check_count(k, "k"),
            threshold=check_probability(threshold, "threshold"),
            tool_threshold=check_probability(tool_threshold, "tool_threshold"),
            require_tools=check_flag(require_tools, "require_tools"),
            mode=statistical_mode,
        )
        check_flag(verbose, "verbose")
        rubric = ToolRubric(weights=tool_weights, threshold=settings.tool_threshold)
        judge: Grader = LLMJudge(model, use_structured_output=use_structured_output)
        # loaded completely, so that everything is checked before the first judgement
        conversations = list(_conversations(retriever))
        with _logged() if verbose else contextlib.nullcontext():
            logged = _LoggedJudge(judge) if verbose else judge
            evidence = assess(conversations, judge=logged, tool_rubric=rubric, progress=False)
        result = AgenticResult.of(conversations, evidence, settings)
        _warn_of_nothing_scored(result)
        return result


_ARGUMENTS = ("retriever", *(Agentic.run.__kwdefaults__ or {}), "model")


def _conversations(retriever: object) -> Iterable[Conversation]:
    """Load the retriever's conversations."""
    if not callable(getattr(retriever, "load_dataset", None)):
        raise InvalidArgument(
            f"retriever must be a Retriever class or instance, with load_dataset(), got {short(retriever)}"
        )
    if isinstance(retriever, type):
        try:
            retriever = retriever()
        except TypeError as error:
            message = f"retriever cannot be created without arguments ({error}); pass an instance"
            raise InvalidArgument(message) from error
    loaded = retriever.load_dataset()  # type: ignore[attr-defined]
    if isinstance(loaded, (str, bytes, Conversation)) or not isinstance(loaded, Iterable):
        raise InvalidArgument(f"load_dataset() must return an iterable of Dataset (Conversation), got {short(loaded)}")
    return loaded


def _warn_of_nothing_scored(result: AgenticResult) -> None:
    """Warn of conversations that the judge could not score; crashed agents have reasons of their own."""
    scored = {row.session_id for row in result.evidence if row.answer_score is not None or row.crashed}
    empty = [row for row in result.evidence if row.session_id not in scored]
    if empty:
        count = len({row.session_id for row in empty})
        reason = short(empty[0].unscored_reason, 200)
        text = (
            f"no turn was scored in {count} of {plural(len(result), 'conversation')}: pass@k and pass^k are undefined "
            f"there, or the prior's (the first is {empty[0].session_id!r}: {reason})"
        )
        warnings.warn(NothingScored(text), stacklevel=3)


class _LoggedJudge:
    """A judge that logs every judgement."""

    def __init__(self, judge: Grader) -> None:
        self._judge = judge
        self.name = judge.name

    @property
    def identity(self) -> str:
        return self._judge.identity

    async def grade(self, conversation: Conversation, position: int) -> Grade:
        grade = self._judge.grade(conversation, position)
        if isawaitable(grade):
            grade = await grade
        value = f"{grade.value:.3f}" if isinstance(grade, Score) else "unscored"
        run = RUN.get()
        reason = grade.reason if run is None else run.without_secrets(grade).reason
        _LOGGER.info("%s, turn %d: %s (%s)", conversation.session_id, position, value, reason)
        return grade


@contextlib.contextmanager
def _logged() -> Iterator[None]:
    """Turn our logger on, with its own handler if the program has set up none."""
    level, handler = _LOGGER.level, logging.StreamHandler()
    quiet = not _LOGGER.hasHandlers()
    _LOGGER.setLevel(logging.INFO)
    if quiet:
        _LOGGER.addHandler(handler)
    try:
        yield
    finally:
        _LOGGER.setLevel(level)
        _LOGGER.removeHandler(handler)
