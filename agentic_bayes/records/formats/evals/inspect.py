"""Read Inspect logs: ``.json`` (one object with ``samples``) and ``.eval`` (a zip file with one member per sample).

A sample is a conversation of one interaction. Its score is the first scorer's: "C", "P", "I" and "N" are 1, ½, 0 and
0, as in Inspect; NaN means no score. A sample that crashed or was cancelled has an error instead; one that hit a limit
counts, because the agent caused it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from io import BufferedReader
from typing import Any

from agentic_bayes.records.base import short
from agentic_bayes.records.wire.chat import ChatCall, Message, one_turn, system_text
from agentic_bayes.records.wire.fields import Faults, Fields, fitting
from agentic_bayes.records.wire.json_text import JsonPart, Parsed, broken, parts
from agentic_bayes.records.wire.layout import Origin, Shape, converted, with_doubts
from agentic_bayes.records.wire.zip_members import begins_zip, directory, named_otherwise, opened, seekable

NAME = "inspect"

_SPEC = frozenset({"task", "model", "run_id", "eval_id", "task_id", "dataset", "created"})
_HEADERS = ("header.json", "_journal/start.json", "start.json")
_SAMPLES = "samples/"
# members that only repeat what other members hold
_SUMMED_UP = re.compile(r"(summaries|reductions)\.json|_journal/.+")
# names that look like a sample's but are not quite
_LIKE_A_SAMPLE = re.compile(r"[./\\]*samples[/\\]", re.IGNORECASE)
# a chunked sample has its own folder, and this is the main member in it
_CHUNKED = "/sample.json"
_IN_CHUNKS = "is a sample in chunks (version 3 of Inspect's logs), which is not supported"
_FOLDER = re.compile(r"samples/.+_epoch_\d+(?=/|$)")
# unused members of a log and of a sample; they can be most of the file
_LEFT_OUT = frozenset({"plan", "stats", "reductions", "log_updates"})
_PASSED_OVER = frozenset({"events", "events_data", "timelines", "store", "message_pool", "call_pool"})

_LETTERS = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
_WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_UNFINISHED = {
    "started": "the run did not finish",
    "cancelled": "the run was cancelled",
    "error": "the run ended with an error",
}


def recognises(shape: Shape) -> bool:
    """Whether a file of this shape is in this format."""
    spec, sample = shape.values.get("eval"), shape.first.get("samples")
    if isinstance(spec, dict):
        return "task" in spec and len(_SPEC & spec.keys()) > 1
    return isinstance(sample, dict) and sample.keys() >= {"id", "epoch", "input", "target"}


def read(stream: BufferedReader, origin: Origin) -> Iterator[Parsed]:
    """The samples of a log."""
    log = _InspectLog(origin)
    yield from with_doubts(_zipped(stream, log) if begins_zip(stream) else _plain(stream, log), log.doubts)


@dataclass(slots=True)
class _InspectLog:
    """What applies to the log as a whole."""

    origin: Origin
    members: dict[str, Any] = field(default_factory=dict)
    found: int = 0
    repeated: int = 0
    unresolved: int = 0
    # why members were ignored → their names
    others: dict[str, list[str]] = field(default_factory=dict)

    @property
    def spec(self) -> Fields:
        return Fields(self._object("eval"), ("eval",), Faults())

    def _object(self, key: str) -> dict[str, Any]:
        value = self.members.get(key)
        return value if isinstance(value, dict) else {}

    def faults(self) -> Faults:
        """Problems of the log itself, apart from its samples."""
        faults = Faults()
        for key in ("eval", "status", "results"):
            fitting(self.members.get(key), (key,), faults)
        Fields(self.members, (), faults).text("status")
        spec = Fields(self.members.get("eval", {}), ("eval",), faults)
        spec.name("task", required=True)
        for key in ("model", "run_id", "eval_id"):
            spec.name(key)
        return faults

    @property
    def status(self) -> str | None:
        value = self.members.get("status")
        return value if isinstance(value, str) else None

    def expected(self) -> int | None:
        """How many samples the log should hold, if it says so."""
        total = Fields(self._object("results"), (), Faults()).whole("total_samples")
        if total is not None:
            return total
        dataset, config = self.spec.mapping("dataset"), self.spec.mapping("config")
        ids, size = dataset.sequence("sample_ids"), dataset.whole("samples")
        if not ids and size is None:
            return None
        if not ids and ("limit" in config or "sample_id" in config):
            return None
        return (len(ids) or size or 0) * (config.whole("epochs") or 1)

    def doubts(self) -> list[str]:
        """Warnings about the log."""
        found, expected, messages = self.found, self.expected(), []
        if expected is not None and found < expected:
            messages.append(f"samples missing from the file: {expected - found:,} of {expected:,}")
        if self.repeated:
            messages.append(
                f"members that the zip file holds more than once (the last one was read): {self.repeated:,}"
            )
        if self.unresolved:
            messages.append(f"texts whose attachments are missing from the file: {self.unresolved:,}")
        for kind, names in self.others.items():
            shown = ", ".join(short(name) for name in names[:3]) + (", …" if len(names) > 3 else "")
            messages.append(f"members ignored because they {kind}: {len(names):,} ({shown})")
        return messages

    def leave_out(self, name: str) -> None:
        """Note a zip member that is not read, unless every log has it."""
        if name.endswith("/") or name in _HEADERS or _SUMMED_UP.fullmatch(name):
            return
        like = _LIKE_A_SAMPLE.match(name)
        kind = "are not named like samples (samples/….json)" if like else "do not belong to an Inspect log"
        self.others.setdefault(kind, []).append(name)


def _plain(stream: BufferedReader, log: _InspectLog) -> Iterator[Parsed]:
    """The samples of a JSON log, one by one; samples before the log's header wait for it."""
    waiting: list[JsonPart] = []
    checked = False
    for part in parts(stream, {"samples"}):
        match part.path:
            case ():
                if part.faults:
                    yield Parsed(part.place, faults=part.faults)
                elif part.document:
                    yield broken(part.where, "must be the only log in the file, got another one after it")
            case (0,):
                yield broken("", "must be one object, got a list")
            case ("samples", int()):
                log.found += 1
                waiting.append(part)
                if not {"eval", "status"} <= log.members.keys():
                    continue
            case (str(key),):
                if part.faults:
                    yield Parsed(key, faults=part.faults)
                elif key == "samples" and not isinstance(part.value, list | None):
                    yield broken(key, f"must be a list, got {short(part.value)}")
                elif key not in _LEFT_OUT and key != "samples":
                    log.members[key] = part.value
                continue
        if not checked and log.members:
            checked = True
            yield from _header_faults(log)
        yield from (_sample(sample.place, sample.value, sample.faults, log) for sample in waiting)
        waiting = []
    if not checked:
        yield from _header_faults(log)
    yield from (_sample(sample.place, sample.value, sample.faults, log) for sample in waiting)
    if not log.found:
        yield _no_sample(log)


def _header_faults(log: _InspectLog) -> Iterator[Parsed]:
    if faults := log.faults():
        yield Parsed("", faults=tuple(faults))


def _no_sample(log: _InspectLog) -> Parsed:
    expected = log.expected()
    return broken("", "holds no sample" + (f" of the {expected:,} that it should hold" if expected else ""))


def _zipped(stream: BufferedReader, log: _InspectLog) -> Iterator[Parsed]:
    """The samples of a zip file."""
    try:
        with seekable(stream) as file, directory(file) as packed:
            members = {member.filename: member for member in packed.infolist()}
            log.repeated = len(packed.infolist()) - len(members)
            header = next((name for name in _HEADERS if name in members), None)
            if header is None:
                names = ", ".join(sorted(members)[:3]) or "no member"
                needed = " or ".join(_HEADERS[:2])
                yield broken("", f"is a zip file but not an Inspect log: it must hold {needed}, got {short(names)}")
                return
            log.members, faults = _members(packed, members[header], _LEFT_OUT)
            # the header is written at the end: without it the run is unfinished or broke off
            if header != _HEADERS[0]:
                log.members["status"] = log.members.get("status") or "started"
            if faults:
                yield Parsed(header, faults=faults)
                return
            yield from _header_faults(log)
            chunked = set(filter(_FOLDER.fullmatch, (name.removesuffix(_CHUNKED) for name in members)))
            for name, member in members.items():
                folder, where = _FOLDER.match(name), name if len(name) <= 200 else name[:199] + "…"
                if other := named_otherwise(packed, member):
                    log.found += 1
                    yield broken(where, f"must have one name, got {short(other)} in front of its data")
                elif folder and folder[0] in chunked:
                    if name == folder[0] + _CHUNKED:
                        log.found += 1
                        yield broken(where, _IN_CHUNKS)
                elif name.startswith(_SAMPLES) and name.endswith(".json"):
                    log.found += 1
                    value, faults = _members(packed, member, _PASSED_OVER)
                    yield _sample(where, value, faults, log)
                else:
                    log.leave_out(name)
            if not log.found:
                yield _no_sample(log)
    except OSError as error:
        yield broken("", str(error))


def _members(packed: Any, member: Any, left_out: frozenset[str]) -> tuple[dict[str, Any], tuple[tuple[str, str], ...]]:
    """Read an object from a zip file, dropping unused members item by item; with its problems."""
    found: dict[str, Any] = {}
    wrong: list[tuple[str, str]] = []
    documents = 0
    try:
        with opened(packed, member) as stream:
            for part in parts(stream, left_out | {"messages"}):
                match part.path:
                    case ():
                        documents += 1
                        wrong += part.faults
                        if isinstance(part.value, list) and not wrong:
                            wrong.append(("", "must be an object, got []"))
                        if documents > 1 and not part.faults:
                            wrong.append(("", "must be one object, got another one after it"))
                    case (int(),):
                        wrong = [("", "must be an object, got a list")]
                    case (str(key), *rest):
                        wrong += part.inner_faults
                        if key in left_out:
                            continue
                        if rest:
                            found[key].append(part.value)
                        else:
                            found[key] = part.value
    except OSError as error:
        wrong.append(("", f"cannot be read: {error}"))
    return found, tuple(wrong)


def _sample(where: str, value: Any, wrong: tuple[tuple[str, str], ...], log: _InspectLog) -> Parsed:
    if wrong:
        return Parsed(where, faults=wrong)
    return converted(where, value, (), lambda value, faults: _conversation(value, faults, log))


@dataclass(slots=True)
class _Attachments:
    """Texts that the log stores separately and refers to."""

    held: Mapping[str, Any]
    missing: int = 0

    def text(self, text: str) -> str:
        for protocol in ("attachment://", "tc://"):
            if text.startswith(protocol):
                found = self.held.get(text.removeprefix(protocol))
                if isinstance(found, str):
                    return found
                self.missing += 1
        return text


_TAKEN = (
    "id", "epoch", "input", "choices", "target", "messages", "output", "scores", "score", "metadata", "model_usage",
    "role_usage", "started_at", "completed_at", "total_time", "working_time", "uuid", "invalidation", "error", "limit",
    "error_retries",
)  # fmt: skip


def _conversation(value: Any, faults: Faults, log: _InspectLog) -> Mapping[str, Any]:
    raw = Fields(value, (), faults)
    attachments = _Attachments(raw.mapping("attachments").value)
    texts = {key: attachments.text if key in ("input", "messages", "output") else None for key in _TAKEN}
    kept = {key: fitting(raw.raw(key), (key,), faults, text=texts[key]) for key in _TAKEN if key in raw}
    log.unresolved += attachments.missing
    sample = Fields(kept, (), faults)
    spec = log.spec
    task, run = spec.name("task") or log.origin.stem, spec.name("eval_id") or spec.name("run_id") or log.origin.stem
    identity, epoch = sample.name("id", required=True), sample.whole("epoch", required=True)
    if epoch == 0:
        faults.add(("epoch",), "must be a whole number ≥ 1, got 0")
    messages = _messages(sample, "messages")
    asked = _messages(sample, "input") if isinstance(kept.get("input"), list) else ()
    turn = one_turn(messages, qa_id=f"{task}/{identity}")
    turn["query"] = _said(asked) if asked else sample.text("input", required=True) or ""
    turn["assistant"] = _answer(sample, messages)
    targets = _targets(sample)
    if targets:
        turn["ground_truth_assistant"] = " or ".join(targets)
    score, scores, note = _scores(sample)
    error = _error(sample, log.status, scored=bool(scores))
    if error is not None:
        turn["assistant"] = turn["assistant"] or None
        score = None
    times: dict[str, Any] = {key: sample.number(key) for key in ("total_time", "working_time")}
    times |= {key: sample.text(key) for key in ("started_at", "completed_at")}
    metadata = {
        "format": NAME,
        "task": task,
        "model": spec.name("model"),
        "scores": scores,
        "not_scored": note,
        "targets": targets if len(targets) > 1 else None,
        "choices": sample.sequence("choices"),
        "limit": sample.raw("limit"),
        "tokens": _tokens(sample),
        "model_usage": sample.mapping("model_usage").value,
        "role_usage": sample.mapping("role_usage").value,
        "times": {key: value for key, value in times.items() if value is not None},
        "numbers_not_finite": faults.not_finite,
        "retried": len(sample.sequence("error_retries")),
        "sample": sample.mapping("metadata").value,
    }
    return {
        "session_id": sample.name("uuid") or f"{run} {task}/{identity} epoch {epoch}",
        "assistant_id": log.origin.given_agent or spec.name("model") or log.origin.own_agent,
        "task_id": f"{task}/{identity}",
        "trial": max((epoch or 1) - 1, 0),
        "context": system_text(messages) or system_text(asked),
        "conversation": [turn],
        "error": error,
        "recorded_score": score,
        "metadata": {key: content for key, content in metadata.items() if content},
    }


def _targets(sample: Fields) -> list[str]:
    """The right answers: Inspect's scorers accept any of several targets."""
    several = isinstance(sample.raw("target"), list)
    targets = sample.texts("target") if several else [sample.text("target")]
    return [target for target in targets if target]


def _said(messages: Any) -> str:
    return "\n\n".join(message.text for message in messages if message.role == "user" and message.text.strip())


def _answer(sample: Fields, messages: list[Message]) -> str:
    """The answer: the log's output or, if that has no text, the last thing the agent said."""
    output = sample.mapping("output")
    completion = output.text("completion")
    if completion and completion.strip():
        return completion
    for choice in output.mappings("choices")[:1]:
        if (text := _content(choice.mapping("message"))).strip():
            return text
    said = (message.text for message in reversed(messages) if message.role == "assistant" and message.text.strip())
    return next(said, "")


def _tokens(sample: Fields) -> dict[str, int]:
    """Tokens over all models."""
    usage = sample.mapping("model_usage")
    each = [usage.mapping(model) for model in usage.value]
    total = {side: sum(one.whole(f"{side}_tokens") or 0 for one in each) for side in ("input", "output")}
    return total if any(total.values()) else {}


def _error(sample: Fields, status: str | None, *, scored: bool) -> str | None:
    """Why the sample cannot be judged; None if it can."""
    if "invalidation" in sample:
        given = sample.mapping("invalidation")
        return _first_line("invalidated: ", given.text("reason") or f"by {given.text('author') or 'unknown'}")
    if "error" in sample:
        if isinstance(sample.raw("error"), str):
            return _first_line("infrastructure: ", str(sample.raw("error")))
        given = sample.mapping("error")
        trace = (given.text("traceback") or "").strip().splitlines()
        return _first_line("infrastructure: ", given.text("message") or (trace[-1] if trace else ""))
    if not scored and status in _UNFINISHED:
        return f"infrastructure: {_UNFINISHED[status]} before the sample was scored"
    return None


def _first_line(kind: str, message: str) -> str:
    lines = message.strip().splitlines()
    return kind + (lines[0] if lines else "no message was recorded")[:500]


def _scores(sample: Fields) -> tuple[float | None, dict[str, Any], str | None]:
    """The first scorer's score, all scores, and why the first is not usable."""
    if "scores" not in sample and "score" in sample:
        given = Fields({"score": sample.raw("score")}, (), sample.faults)
    else:
        given = sample.mapping("scores")
    kept: dict[str, Any] = {}
    for scorer in given.value:
        score = given.mapping(scorer)
        texts = {key: text for key in ("answer", "explanation") if (text := score.text(key)) is not None}
        kept[scorer] = {"value": score.raw("value"), **texts}
    first = next(iter(kept), None)
    if first is None:
        return None, {}, None
    value = kept[first]["value"]
    number = _number(value)
    if number is not None and 0 <= number <= 1:
        return number, kept, None
    if value is None:
        return None, kept, f"scorer {short(first)} gave no score (null or NaN)"
    return None, kept, f"the score of scorer {short(first)} is not a number in [0, 1]: {short(value)}"


def _number(value: Any) -> float | None:
    """A score as a number; text counts as in Inspect."""
    if isinstance(value, str) and (known := _LETTERS.get(value, _WORDS.get(value.lower()))) is not None:
        return known
    if not isinstance(value, (bool, int, float, str)):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _messages(sample: Fields, key: str) -> list[Message]:
    found: list[Message] = []
    for message in sample.mappings(key):
        match message.text("role", required=True):
            case "system":
                found.append(Message("system", _content(message)))
            case "user":
                found.append(Message("user", _content(message)))
            case "tool":
                found.append(_result(message, _content(message)))
            case "assistant":
                calls = [_call(call) for call in message.mappings("tool_calls")]
                by_provider = list(_provider_calls(message))
                found.append(Message("assistant", _content(message), [*(call for call, _ in by_provider), *calls]))
                found += [result for _, result in by_provider]
            case str(role):
                wrong = f"must be system, user, assistant, tool, got {short(role)}"
                message.faults.add((*message.path, "role"), wrong)
    return found


def _call(call: Fields) -> ChatCall:
    nested = isinstance(call.raw("function"), dict)
    source, key = (call.mapping("function"), "name") if nested else (call, "function")
    return ChatCall(source.name(key, required=True) or "?", _arguments(source), call.name("id"))


def _arguments(source: Fields) -> dict[str, Any]:
    found: dict[str, Any] = fitting(source.arguments("arguments"), (*source.path, "arguments"), source.faults)
    return found


def _result(message: Fields, text: str) -> Message:
    """The result of a call; a failed call keeps its error."""
    failed = message.raw("error")
    result = None if failed is None else {"error": failed, **({"content": text} if text else {})}
    return Message("tool", text, answers=message.name("tool_call_id"), tool=message.name("function"), result=result)


def _provider_calls(message: Fields) -> Iterator[tuple[ChatCall, Message]]:
    """Calls that the model's provider ran itself: the message's content holds them with their results."""
    if not isinstance(message.raw("content"), list):
        return
    for part in message.mappings("content"):
        if part.raw("type") == "tool_use":
            name, identity = part.name("name", required=True) or "?", part.name("id")
            result = part.raw("result") if "error" not in part else {"error": part.raw("error")}
            yield (
                ChatCall(name, _arguments(part), identity),
                Message("tool", answers=identity, tool=name, result="" if result is None else result),
            )


def _content(message: Fields) -> str:
    """The text of a message, with a mark for each image, audio, video or document."""
    if not isinstance(message.raw("content"), list):
        return message.text("content") or ""
    texts = []
    for part in message.mappings("content"):
        match part.raw("type"):
            case "text":
                texts.append(part.text("text") or "")
            case "image" | "audio" | "video" | "document" as kind:
                texts.append(f"({kind})")
    return "\n".join(texts)
