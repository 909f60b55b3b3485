"""Builds the judge's prompt: instructions from files, and the material between marks that it cannot contain."""

from __future__ import annotations

import functools
import hashlib
import importlib.resources
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from string import Template
from typing import Any

from agentic_bayes.errors import InvalidArgument, ReplyError, did_you_mean
from agentic_bayes.evidence.llm.reply import REASONING, REPLY_SCHEMA, SCORE
from agentic_bayes.records.base import is_share, short

PromptMessages = list[tuple[str, str]]
"""A conversation with a model: (role, text), where a role is "system", "human" or "ai"."""

_EXAMPLE_KEYS = ("query", "reference", "answer", "reasoning", "score")
_ANY_NUMBER = "a plain number from 0 to 1"
_TOLERANCE = 1e-6  # the scores of choices are shown with six digits
_QUOTED = 2000


@dataclass(frozen=True)
class Prompt:
    """Everything that the judge is shown apart from the material."""

    rubric: str | None = None  # replaces the built-in rubric
    choices: Mapping[str, float] | None = None  # label → score: the only scores allowed
    examples: Sequence[Mapping[str, Any]] = ()  # judged examples, with ``query, reference, answer, reasoning, score``
    digest: str = field(init=False)
    """A hash of everything that the judge is shown apart from the material."""
    opening: PromptMessages = field(init=False, repr=False)
    """The beginning of every prompt: the instructions and the examples."""

    def __post_init__(self) -> None:
        if self.rubric is not None and (not isinstance(self.rubric, str) or not self.rubric.strip()):
            raise InvalidArgument(f"rubric must be text that is not blank, got {short(self.rubric)}")
        if self.choices is not None:
            _check_choices(self.choices)
        if isinstance(self.examples, (str, Mapping)) or not isinstance(self.examples, Sequence):
            raise InvalidArgument(f"examples must be a list of objects, got {short(self.examples)}")
        for position, example in enumerate(self.examples):
            self._check_example(f"examples[{position}]", example)
        system = Template(_text("judge_system")).substitute(rubric=(self.rubric or _text("judge_rubric")).strip())
        if self.choices is not None:
            lines = "\n".join(f"- {score:g}: {label}" for label, score in self.choices.items())
            system = f"{system.rstrip()}\n\n{Template(_text('judge_choices')).substitute(choices=lines)}"
        opening: PromptMessages = [("system", system)]
        for example in self.examples:
            verdict = {REASONING: example["reasoning"], SCORE: example["score"]}
            shown = {name: example[name] for name in ("query", "reference", "answer")}
            opening.append(("human", self.question(shown)))
            opening.append(("ai", json.dumps(verdict, ensure_ascii=False)))
        templates = [_text("judge_interaction"), _text("judge_correction")]
        object.__setattr__(self, "opening", opening)
        object.__setattr__(self, "digest", digest([opening, templates]))

    def _check_example(self, name: str, example: object) -> None:
        if not isinstance(example, Mapping):
            raise InvalidArgument(f"{name} must be an object with {', '.join(_EXAMPLE_KEYS)}, got {short(example)}")
        for key in example:
            if key not in _EXAMPLE_KEYS:
                raise InvalidArgument(f"{name} has an unknown key {key!r}: {did_you_mean(str(key), _EXAMPLE_KEYS)}")
        for key in _EXAMPLE_KEYS:
            if key not in example:
                raise InvalidArgument(f"{name} lacks {key!r}; it needs {', '.join(_EXAMPLE_KEYS)}")
            if key != "score" and not isinstance(example[key], str):
                raise InvalidArgument(f"{name}.{key} must be text, got {short(example[key])}")
        score = example["score"]
        if not is_share(score) or (self.choices is not None and self.choice(score) is None):
            raise InvalidArgument(f"{name}.score must be {self.allowed}, got {short(score)}")

    @property
    def allowed(self) -> str:
        """The allowed scores, in words."""
        if self.choices is None:
            return _ANY_NUMBER
        return "one of " + ", ".join(f"{score:g}" for score in self.choices.values())

    def choice(self, score: float) -> tuple[str, float] | None:
        """The choice with this score, as (label, exact score), or None."""
        choices = (self.choices or {}).items()
        return next((choice for choice in choices if abs(choice[1] - score) <= _TOLERANCE), None)

    @functools.cached_property
    def schema(self) -> dict[str, Any]:
        """The JSON schema of the reply."""
        schema: dict[str, Any] = json.loads(json.dumps(REPLY_SCHEMA))
        if self.choices is not None:
            schema["properties"][SCORE]["enum"] = list(self.choices.values())
        return schema

    def question(self, material: Mapping[str, str]) -> str:
        """The human message for one interaction, which follows the `opening`."""
        return fenced(material, _text("judge_interaction"))

    def correction(self, reply: str, problem: ReplyError) -> PromptMessages:
        """The reply that could not be read, shortened, and what was wrong with it."""
        return corrected(reply, _text("judge_correction"), problem=problem, number=self.allowed)


def corrected(reply: str, template: str, **values: object) -> PromptMessages:
    """A reply that could not be read, shortened, and the request to correct it."""
    request = Template(template).substitute(values).strip()
    return [("ai", reply.strip()[:_QUOTED] or "(no text)"), ("human", request)]


def digest(content: object) -> str:
    """A hash of a value that JSON can hold."""
    return text_digest(json.dumps(content))


def text_digest(text: str) -> str:
    """A hash of a text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@functools.cache
def prompt_text(package: str, name: str) -> str:
    """A text among the prompts of a package."""
    return importlib.resources.files(package).joinpath("prompts", f"{name}.txt").read_text(encoding="utf-8")


_text = functools.partial(prompt_text, __package__)


def fenced(material: Mapping[str, str], template: str) -> str:
    """The material, each part between marks that no part contains.

    The key is a digest of all parts, so a text with its own key would have to be a fixed point of the hash; should
    that ever happen, the next digest is used.
    """
    # with lengths, so that different materials never give the same text
    key = text_digest("".join([f"{name} {len(text)} {text} " for name, text in material.items()]))[:16]
    while any(key in text for text in material.values()):
        key = text_digest(key)[:16]
    blocks = [f"[{name} {key}]\n{text}\n[end of {name} {key}]" for name, text in material.items()]
    # the material is inserted last, so that nothing in it is taken for a placeholder
    before, after = template.replace("$key", key).split("$parts")
    return before + "\n\n".join(blocks) + after


def _check_choices(choices: object) -> None:
    if not isinstance(choices, Mapping) or len(choices) < 2:
        raise InvalidArgument(f"choices must map two or more labels to scores in [0, 1], got {short(choices)}")
    for label, score in choices.items():
        if not isinstance(label, str) or not label.strip() or "\n" in label:
            raise InvalidArgument(f"choices must have labels of one line of text, got {short(label)}")
        if not is_share(score):
            raise InvalidArgument(f"choices[{label!r}] must be a number in [0, 1], got {short(score)}")
    values = sorted(choices.values())
    if any(high - low <= 2 * _TOLERANCE for low, high in itertools.pairwise(values)):
        raise InvalidArgument(f"choices must have different scores, got {short(list(choices.values()))}")
