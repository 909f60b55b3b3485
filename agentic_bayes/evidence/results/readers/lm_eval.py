"""Results of lm-eval (the evaluation harness): ``samples_<task>_<time>.jsonl`` of ``--log_samples``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentic_bayes.errors import EvidenceError
from agentic_bayes.evidence.results.base import (
    ResultsContent,
    ResultsFormat,
    ResultTrial,
    as_text,
    each,
    first_text,
    needed,
)
from agentic_bayes.evidence.table import read_json

_NAME = re.compile(r"samples_(?P<task>.+)_(?P<time>\d{4}-\d\d-\d\dT[\d.-]+)\.jsonl(\.gz)?")


_OTHERS = {"doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "doc_hash", "prompt_hash", "target_hash"}


def _recognises(content: ResultsContent) -> bool:
    return content.has("doc_id", "doc", "target", "resps", "filtered_resps")


def _trials(content: ResultsContent) -> Iterator[ResultTrial]:
    """One trial per document: what each filter made of its answer is a score, ``exact_match,strict-match``."""
    path = Path(content.source)
    name = _NAME.fullmatch(path.name)
    agent = _model(path, name["time"]) or path.resolve().parent.name if name else None
    several = len({str(row.get("filter")) for _, row in each(content.rows, "rows")}) > 1
    documents = [row.get("doc_id") for _, row in each(content.rows, "rows")]
    once = len(set(map(str, documents))) == len(documents)
    seen: dict[tuple[str, str], int] = {}  # document and filter → times
    merged: dict[tuple[str, int], ResultTrial] = {}
    for where, row in each(content.rows, "rows"):
        document = needed(first_text(row.get("doc_id")), "doc_id", where)
        filtered = str(row.get("filter"))
        number = seen[document, filtered] = seen.get((document, filtered), -1) + 1
        scores = {f"{metric},{filtered}" if several else metric: value for metric, value in _metrics(row, where, once)}
        trial = merged.get((document, number))
        merged[document, number] = ResultTrial(
            agent=agent,
            task=f"{name['task']}/{document}" if name else document,
            scores=scores if trial is None else {**trial.scores, **scores},
            metadata={"task": name["task"]} if name else {},
            place=where if trial is None else trial.place,
            raw=row,
            asks=as_text(row.get("doc_hash", row.get("doc"))),
        )
    yield from merged.values()


def _metrics(row: dict[str, Any], where: str, once: bool) -> Iterator[tuple[str, Any]]:
    """The metrics of a sample that are one value; those of a whole corpus, such as BLEU, are lists.

    Old versions name neither filter nor metrics: if every document is there `once`, all further numbers are metrics.
    """
    names = row.get("metrics")
    if once and "filter" not in row and "metrics" not in row:
        names = [name for name in row if name not in _OTHERS]
    elif "filter" not in row or not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise EvidenceError(
            f"{where} must have filter and metrics, which tell scores apart; old versions left them out"
        )
    return ((name, row[name]) for name in names if isinstance(row.get(name), (bool, int, float)))


def _model(samples: Path, time: str) -> str | None:
    """The model in the results that were written with the samples."""
    results = samples.with_name(f"results_{time}.json")
    value = read_json(results, error=EvidenceError) if results.is_file() else None
    return first_text(value.get("model_name")) if isinstance(value, dict) else None


FORMAT = ResultsFormat(
    name="lm-eval",
    recognises=_recognises,
    trials=_trials,
    taken={
        "agent": "model_name of the results file next to it, else the folder",
        "task": "task of the file's name and doc_id",
        "trial": "samples of one document, in order",
    },
)
