"""Read Inspect logs: ``.json`` (one object with ``samples``) and ``.eval`` (a zip file).

A sample is a conversation of one interaction. Its score is that of the scorer that the caller names or, if there is
only one, of that one: "C", "P", "I" and "N" are 1, ½, 0 and 0, as in Inspect; NaN means no score. A sample that crashed
or was cancelled has an error instead; one that hit a limit counts, because the agent caused it.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BufferedReader

from agentic_bayes.records.base import short
from agentic_bayes.records.formats.evals.inspect.archive import samples_of_zip
from agentic_bayes.records.formats.evals.inspect.log import FORMAT, LEFT_OUT, InspectLog
from agentic_bayes.records.formats.evals.inspect.samples import sample, score_values
from agentic_bayes.records.formats.evals.inspect.scores import LogScores
from agentic_bayes.records.wire.json_text import JsonPart, Parsed, broken, parts
from agentic_bayes.records.wire.layout import Origin, Shape, with_doubts
from agentic_bayes.records.wire.zip_members import begins_zip, seekable

NAME = FORMAT

_SPEC = frozenset({"task", "model", "run_id", "eval_id", "task_id", "dataset", "created"})


def recognises(shape: Shape) -> bool:
    """Whether a file of this shape is in this format."""
    spec, sample = shape.values.get("eval"), shape.first.get("samples")
    if isinstance(spec, dict):
        return "task" in spec and len(_SPEC & spec.keys()) > 1
    return isinstance(sample, dict) and sample.keys() >= {"id", "epoch", "input", "target"}


def read(stream: BufferedReader, origin: Origin) -> Iterator[Parsed]:
    """The samples of a log."""
    log = InspectLog(origin, LogScores(origin.options.scorer, origin.options.scale))
    found = samples_of_zip(stream, log) if begins_zip(stream) else _samples_of_text(stream, log)
    yield from with_doubts(found, log.doubts)


def _samples_of_text(stream: BufferedReader, log: InspectLog) -> Iterator[Parsed]:
    """The samples of a JSON log, which is read twice: which score counts depends on all samples."""
    file = seekable(stream)
    text = stream if file is stream else BufferedReader(file)  # type: ignore[arg-type, type-var, unused-ignore]
    for part in parts(text, {"samples"}):
        if part.path[:1] == ("samples",) and len(part.path) > 1 and isinstance(part.value, dict):
            log.scores.learn(score_values(part.value), part.place)
    text.seek(0)
    yield from _plain(text, log)


def _plain(stream: BufferedReader, log: InspectLog) -> Iterator[Parsed]:
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
                elif key not in LEFT_OUT and key != "samples":
                    log.members[key] = part.value
                continue
        if not checked and log.members:
            checked = True
            yield from log.header_faults()
        yield from (sample(one.place, one.value, one.faults, log) for one in waiting)
        waiting = []
    if not checked:
        yield from log.header_faults()
    yield from (sample(one.place, one.value, one.faults, log) for one in waiting)
    if not log.found:
        yield log.no_sample()
