"""Grade the text of an answer: exact match, keywords, a regular expression, constraints on its form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, StrictBool
from pydantic_core import InitErrorDetails

from agentic_bayes.errors import did_you_mean
from agentic_bayes.evidence.score import Grade
from agentic_bayes.records.base import Record, is_whole, problem_at, short
from agentic_bayes.records.matchers import Pattern, compiled_pattern
from agentic_bayes.records.wire.strict_json import strict_json
from agentic_bayes.suites.graders.rules import PatternList, TextList, expected_text, graded, needs_text, readable
from agentic_bayes.suites.trial import AgentReply, SuiteTask, TrialAttempt

_SHOWN = 80


class ExactMatch(Record):
    """Passes if the answer equals ``expected.text``."""

    ignore_case: StrictBool = False
    ignore_whitespace: StrictBool = False  # anywhere in the text

    def check(self, task: SuiteTask) -> str | None:
        """Require ``expected.text``."""
        return needs_text(task)

    async def grade(self, attempt: TrialAttempt, reply: AgentReply) -> Grade:
        """Score 1 if they are equal, else 0."""
        wanted = expected_text(attempt.task) or ""
        if self._plain(wanted) == self._plain(reply.text):
            return graded(1.0, True, "The answer is the expected text.")
        reason = f"expected {short(wanted, _SHOWN)}, got {short(reply.text, _SHOWN)}"
        return graded(0.0, False, reason, "wrong answer" if reply.text.strip() else "no answer")

    def _plain(self, text: str) -> str:
        text = text.casefold() if self.ignore_case else text
        return "".join(text.split()) if self.ignore_whitespace else text


class Contains(Record):
    """Scores the share of keywords that the answer contains; it passes if it contains all of them."""

    # Default: ``expected.fields`` (a list of texts, or the texts of an object), else ``expected.text``.
    keywords: TextList | None = None
    ignore_case: StrictBool = False

    def check(self, task: SuiteTask) -> str | None:
        """Require keywords, here or in the task's expectations."""
        wanted = self._wanted(task)
        return wanted if isinstance(wanted, str) else None

    async def grade(self, attempt: TrialAttempt, reply: AgentReply) -> Grade:
        """Score the share of keywords in the answer."""
        wanted = self._wanted(attempt.task)
        if isinstance(wanted, str):
            raise ValueError(wanted)
        answer = self._plain(reply.text)
        missing = [word for word in wanted if self._plain(word) not in answer]
        reason = f"missing: {', '.join(short(word) for word in missing)}" if missing else "All keywords are there."
        return graded((len(wanted) - len(missing)) / len(wanted), not missing, reason, "missing fact")

    def _plain(self, text: str) -> str:
        return text.casefold() if self.ignore_case else text

    def _wanted(self, task: SuiteTask) -> tuple[str, ...] | str:
        """The keywords, or why there are none."""
        if self.keywords is not None:
            return self.keywords
        fields: Any = task.expected.get("fields")
        if fields is None:
            text = expected_text(task)
            if text is not None and text.strip():
                return (text,)
            return "keywords must be given, or the task's expected.fields or expected.text"
        listed = list(fields.values()) if isinstance(fields, Mapping) else fields
        if not isinstance(listed, (list, tuple)) or not listed:
            return f"expected.fields must be a list of texts, or an object of texts, got {short(fields)}"
        for value in listed:
            if not isinstance(value, str) or not value.strip():
                return f"expected.fields must hold texts (numbers in quotes), none of them blank, got {short(value)}"
        return tuple(listed)


class Regex(Record):
    """Passes if the answer matches a regular expression (RE2: linear time, no look-around, no back-references)."""

    # Default: the task's ``expected.pattern``. ``expected.text`` is never used as a pattern, because "$5.00" would mean
    # something else.
    pattern: Pattern | None = None
    ignore_case: StrictBool = False
    full: StrictBool = False  # whether the whole answer must match; otherwise a part is enough

    def check(self, task: SuiteTask) -> str | None:
        """Require a valid pattern, here or in the task's expectations."""
        pattern = self._pattern(task)
        if pattern is None:
            return "pattern must be given, or the task's expected.pattern"
        if not isinstance(pattern, str):
            return f"expected.pattern must be text, got {short(pattern)}"
        try:
            compiled_pattern(pattern)
        except ValueError as error:
            return f"expected.pattern {error}, got {short(pattern)}"
        return None

    async def grade(self, attempt: TrialAttempt, reply: AgentReply) -> Grade:
        """Score 1 if the answer matches, else 0."""
        pattern = self._pattern(attempt.task)
        compiled = compiled_pattern(f"(?i:{pattern})" if self.ignore_case else pattern)
        answer = readable(reply.text)
        if (compiled.fullmatch if self.full else compiled.search)(answer) is not None:
            return graded(1.0, True, "The answer matches.")
        return graded(0.0, False, f"{short(pattern, _SHOWN)} does not match {short(answer, _SHOWN)}", "format")

    def _pattern(self, task: SuiteTask) -> Any:
        return task.expected.get("pattern") if self.pattern is None else self.pattern


def _count(value: Any) -> Any:
    if not is_whole(value) or value < 0:
        raise ValueError("must be a whole number ≥ 0")
    return value


_FORMATS = ("json", "markdown", "text")


def _format(value: Any) -> Any:
    if value not in _FORMATS:
        near = f": {did_you_mean(value, _FORMATS)}" if isinstance(value, str) else ""
        raise ValueError(f"must be json, markdown or text{near}")
    return value


SizeLimit = Annotated[int, BeforeValidator(_count)]
AnswerFormat = Annotated[str, BeforeValidator(_format)]
# a heading, an item of a list, a quotation, a fence, a table's rule, bold text, code, a link
_MARKUP = (
    r"(?m)^ {0,3}#{1,6}[ \t]+\S|^[ \t]*([-*+]|\d{1,9}[.)])[ \t]+\S|^ {0,3}>|^ {0,3}(```|~~~)"
    r"|^[ \t]*\|?[ \t]*:?-{3,}:?[ \t]*\||\*\*[^*\s][^*]*\*\*|__[^_\s][^_]*__|`[^`\n]+`|\[[^\]\n]+\]\([^)\s]+\)"
)


class Constraint(Record):
    """Scores the share of rules about its form that the answer keeps; it passes if it keeps all of them."""

    min_words: SizeLimit | None = None  # words are separated by white space
    max_words: SizeLimit | None = None
    min_chars: SizeLimit | None = None  # characters, including white space
    max_chars: SizeLimit | None = None
    min_lines: SizeLimit | None = None  # lines, including blank ones; a final line break does not start another line
    max_lines: SizeLimit | None = None
    # "json": the whole answer is a JSON value; "markdown": it contains Markdown (a heading, list, quotation, fence,
    # table, bold text, code or link); "text": neither
    format: AnswerFormat | None = None
    # Patterns (RE2) that the answer must contain, or must not contain. Each pattern is a rule.
    must_match: PatternList = ()
    must_not_match: PatternList = ()

    @classmethod
    def _across_fields(cls, data: Any) -> list[InitErrorDetails]:
        rules = data if isinstance(data, dict) else data.model_dump(exclude_defaults=True)
        if not any(value is not None for value in rules.values()):
            names = ", ".join(cls.model_fields)
            return [problem_at((), f"must hold at least one rule: {names}", None)]
        problems = []
        for what in ("words", "chars", "lines"):
            low, high = rules.get(f"min_{what}"), rules.get(f"max_{what}")
            if isinstance(low, int) and isinstance(high, int) and low > high:
                problems.append(problem_at((f"min_{what}",), f"must be at most max_{what} ({high}), got {low}", None))
        return problems

    async def grade(self, attempt: TrialAttempt, reply: AgentReply) -> Grade:
        """Score the share of rules that the answer keeps."""
        answer = readable(reply.text)
        sizes = {"words": len(answer.split()), "chars": len(answer), "lines": len(answer.splitlines())}
        rules: list[tuple[str, bool]] = []  # what to say if it is broken, and whether it is kept
        for what, size in sizes.items():
            if (least := getattr(self, f"min_{what}")) is not None:
                rules.append((f"{size} {what}, at least {least} allowed", size >= least))
            if (most := getattr(self, f"max_{what}")) is not None:
                rules.append((f"{size} {what}, at most {most} allowed", size <= most))
        if self.format:
            rules.append((f"the answer is not {self.format}", _has_format(answer, self.format)))
        for pattern in self.must_match:
            rules.append((f"nothing matches {short(pattern)}", compiled_pattern(pattern).search(answer) is not None))
        for pattern in self.must_not_match:
            rules.append((f"something matches {short(pattern)}", compiled_pattern(pattern).search(answer) is None))
        broken = [message for message, kept in rules if not kept]
        share = (len(rules) - len(broken)) / len(rules)
        return graded(share, not broken, "; ".join(broken) or "All constraints are kept.", "format")


def _has_format(answer: str, form: str) -> bool:
    if form == "json":
        return _is_json(answer)
    has_markup = compiled_pattern(_MARKUP).search(answer) is not None
    if form == "markdown":
        return has_markup
    return not has_markup and not (answer.lstrip()[:1] in ("{", "[") and _is_json(answer))


def _is_json(answer: str) -> bool:
    try:
        strict_json(answer)
    except ValueError:
        return False
    return True
