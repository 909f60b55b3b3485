"""The zip files of Inspect: a header, and a member for each sample or a folder with the pieces of one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import BufferedReader
from typing import Any

from agentic_bayes.formatting import cut_text
from agentic_bayes.records.base import short
from agentic_bayes.records.formats.evals.inspect.log import LEFT_OUT, InspectLog
from agentic_bayes.records.formats.evals.inspect.samples import sample, score_values
from agentic_bayes.records.wire.json_text import Parsed, broken, parts
from agentic_bayes.records.wire.zip_members import directory, named_otherwise, opened, seekable

_HEADERS = ("header.json", "_journal/start.json", "start.json")
_SAMPLES = "samples/"
# members that only repeat what other members hold
_SUMMARIES = "summaries.json"
_SUMMED_UP = re.compile(r"(summaries|reductions)\.json|_journal/.+")
# names that look like a sample's but are not quite
_LIKE_A_SAMPLE = re.compile(r"[./\\]*samples[/\\]", re.IGNORECASE)
# a sample in pieces has a folder of its own: its main member, and lists of which each member holds some items; a
# member is named after the first
_MAIN = "/sample.json"
_FOLDER = re.compile(r"samples/.+_epoch_\d+(?=/|$)")
_PIECE = re.compile(r"/(messages|attachments|events)/(\d{1,12})\.json")
# unused members of a sample; they can be most of the file
_PASSED_OVER = frozenset({"events", "events_data", "timelines", "store", "message_pool", "call_pool"})
_NOT_SCORES = _PASSED_OVER | {"messages", "input", "output", "attachments", "metadata"}

_Wrongs = tuple[tuple[str, str], ...]


def samples_of_zip(stream: BufferedReader, log: InspectLog) -> Iterator[Parsed]:
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
            log.members, faults = _object(packed, members[header], LEFT_OUT)
            # the header is written at the end: without it the run is unfinished or broke off
            if header != _HEADERS[0]:
                log.members["status"] = log.members.get("status") or "started"
            if faults:
                yield Parsed(header, faults=faults)
                return
            in_pieces = set(filter(_FOLDER.fullmatch, (name.removesuffix(_MAIN) for name in members)))
            whole = {name: name for name in members if _is_sample(name, in_pieces)}
            whole |= {f"{folder}{_MAIN}": folder for folder in in_pieces}
            _learn_scores(packed, members, whole, log)
            yield from log.header_faults()
            for name, member in members.items():
                where = cut_text(name, 200)
                if other := named_otherwise(packed, member):
                    log.found += 1
                    yield broken(where, f"must have one name, got {short(other)} in front of its data")
                elif name in whole:
                    log.found += 1
                    value, faults = _object(packed, member, _PASSED_OVER)
                    if whole[name] != name and not faults:
                        faults = _put_together(value, whole[name], packed, members)
                    yield sample(where, value, faults, log)
                elif not _belongs(name, in_pieces):
                    like = _LIKE_A_SAMPLE.match(name)
                    why = "are not named like samples (samples/….json)" if like else "do not belong to an Inspect log"
                    log.others[why].append(name)
            if not log.found:
                yield log.no_sample()
    except OSError as error:
        yield broken("", str(error))


def _is_sample(name: str, in_pieces: set[str]) -> bool:
    folder = _FOLDER.match(name)
    return name.startswith(_SAMPLES) and name.endswith(".json") and not (folder and folder[0] in in_pieces)


def _belongs(name: str, in_pieces: set[str]) -> bool:
    """Whether every log has this member, or it is a piece of a sample."""
    folder = _FOLDER.match(name)
    known = name.endswith("/") or name in _HEADERS or _SUMMED_UP.fullmatch(name)
    return bool(known) or (folder is not None and folder[0] in in_pieces)


def _learn_scores(packed: Any, members: dict[str, Any], samples: dict[str, str], log: InspectLog) -> None:
    """Learn the scores of all samples: from the summaries, if these are complete, or else from the samples."""
    summaries, faults = _items(packed, members[_SUMMARIES]) if _SUMMARIES in members else ([], ())
    if not faults and len(summaries) == len(samples) and all(isinstance(one, dict) for one in summaries):
        for one in summaries:
            log.scores.learn(score_values(one), f"sample {short(one.get('id'))}, epoch {short(one.get('epoch'))}")
        return
    for name in samples:
        log.scores.learn(score_values(_object(packed, members[name], _NOT_SCORES)[0]), name)


def _put_together(value: dict[str, Any], folder: str, packed: Any, members: dict[str, Any]) -> _Wrongs:
    """Give a sample what its other members hold: its messages, attachments and metadata; returns the faults."""
    faults: list[tuple[str, str]] = []
    held: dict[str, list[Any]] = {}
    for kind in ("messages", "attachments", "events"):
        starts = sorted(
            (int(match[2]), folder + match[0])
            for name in members
            if name.startswith(folder) and (match := _PIECE.fullmatch(name, len(folder))) and match[1] == kind
        )
        found = held.setdefault(kind, [])
        for start, name in starts:
            if start != len(found):
                faults.append((kind, f"items {len(found)} to {start - 1} are missing: {name} begins with item {start}"))
                break
            items, wrong = _items(packed, members[name])
            faults += wrong
            found += map(_of_event, items) if kind == "events" else items
    value["events"] = held["events"]
    refs = value.pop("message_refs", [])
    if not faults:
        value["messages"], faults = _chosen(held["messages"], refs)
    value["attachments"] = {str(number): text for number, text in enumerate(held["attachments"])}
    if (name := f"{folder}/metadata.json") in members:
        value["metadata"], wrong = _object(packed, members[name], frozenset())
        faults += wrong
    return tuple(faults)


def _of_event(event: Any) -> dict[str, Any]:
    """What is used of an event: the tools that a model call was offered."""
    return {key: event[key] for key in ("event", "tools") if key in event} if isinstance(event, dict) else {}


def _chosen(messages: list[Any], refs: Any) -> tuple[list[Any], list[tuple[str, str]]]:
    """The messages that a sample refers to: ranges, each from the first to before the last."""
    found: list[Any] = []
    for position, ends in enumerate(refs if isinstance(refs, list) else [refs]):
        match ends:
            case [int(start), int(end)] if 0 <= start <= end <= len(messages):
                found += messages[start:end]
            case _:
                wrong = f"must be a range of the {len(messages)} messages, got {short(ends)}"
                return [], [(f"message_refs[{position}]", wrong)]
    return found, []


def _items(packed: Any, member: Any) -> tuple[list[Any], _Wrongs]:
    """Read a list from a zip file; with its problems."""
    found: list[Any] = []
    wrong: list[tuple[str, str]] = []
    try:
        with opened(packed, member) as stream:
            for part in parts(stream, ()):
                wrong += part.inner_faults
                match part.path:
                    case (int(),):
                        found.append(part.value)
                    case (_, *_):
                        wrong.append(("", f"{member.filename} must be a list, got an object"))
    except OSError as error:
        wrong.append(("", f"cannot be read: {error}"))
    return found, tuple(wrong)


def _object(packed: Any, member: Any, left_out: frozenset[str]) -> tuple[dict[str, Any], _Wrongs]:
    """Read an object from a zip file, of its events only the tools, without unused members; with its problems."""
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
                        if key == "events" and rest and (told := _of_event(part.value)) not in found.get(key, ()):
                            found.setdefault(key, []).append(told)
                        if key in left_out:
                            continue
                        if rest:
                            found[key].append(part.value)
                        else:
                            found[key] = part.value
    except OSError as error:
        wrong.append(("", f"cannot be read: {error}"))
    return found, tuple(wrong)
