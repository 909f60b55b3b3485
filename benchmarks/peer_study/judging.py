"""Judges: their errors in an estimate, their malformed replies, and what a long run sends to them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
from calibration.judge import LABELS, MU, RHO, SENSITIVITY, SPECIFICITY, TASKS, TRIALS
from calibration.simulate import success_probabilities

from peer_study.environments import Environment

DESIGNS = {"random attempts": False, "whole tasks": True}
TURNS = 200  # of a long run
QUERY, ANSWER, REFERENCE = "What is the capital of France?", "It is Paris.", "Paris"


def _verdict(score: object, reasoning: str = "as the reference says") -> str:
    return json.dumps({"reasoning": reasoning, "correctness_score": score})


RIGHT, DRAFT = _verdict(0.9), _verdict(0.1, "a first thought")
# reply of a judge → the score that it gives, None where a reader cannot tell
REPLIES: dict[str, tuple[str, float | None]] = {
    "a verdict": (RIGHT, 0.9),
    "in a fence": (f"Sure:\n```json\n{RIGHT}\n```\nAnything else?", 0.9),
    "in prose": (f"I think {RIGHT} is fair.", 0.9),
    "in a fence that never ends": (f"```json\n{RIGHT}", 0.9),
    "nested in another object": (json.dumps({"verdict": json.loads(RIGHT)}), 0.9),
    "after a draft in a thought": (f"<think>Perhaps {DRAFT}</think>\n{RIGHT}", 0.9),
    "after an echo of the form": ('Reply as {"reasoning": "text", "correctness_score": 0.0}:\n' + RIGHT, 0.9),
    "after a remark in braces": (f'{{"note": "see below"}}\n{RIGHT}', 0.9),
    "a right answer, score 1": (_verdict(1), 1.0),
    "a wrong answer, score 0": (_verdict(0), 0.0),
    "no reply": ("", None),
    "a refusal": ("I'm sorry, but I can't judge this.", None),
    "cut off in the number": ('{"reasoning": "right", "correctness_score": 0.', None),
    "cut off before the score": ('{"reasoning": "right", "correctness', None),
    "no score": ('{"reasoning": "right"}', None),
    "null": (_verdict(None), None),
    "a word for a score": (_verdict("high"), None),
    "95": (_verdict(95), None),
    "-1": (_verdict(-1), None),
    "Infinity": ('{"reasoning": "r", "correctness_score": Infinity}', None),
    "NaN": ('{"reasoning": "r", "correctness_score": NaN}', None),
    "two verdicts that disagree": (f"{DRAFT}\n{RIGHT}", None),
    "the score twice": ('{"reasoning": "r", "correctness_score": 0.1, "correctness_score": 0.9}', None),
    "only the form, echoed": ('Reply as {"reasoning": "text", "correctness_score": 0.0}', None),
}


def judge_errors(environments: Mapping[str, Environment], sets: int, seed: int) -> list[dict[str, Any]]:
    """Coverage and width of the success rate of a new task, judged by a judge that errs, with a few human labels."""
    rows = []
    for design, whole_tasks in DESIGNS.items():
        data = [_judged(np.random.default_rng([seed, whole_tasks, i]), whole_tasks) for i in range(sets)]
        for name, environment in environments.items():
            answer = environment.call("judged", sets=data, trials=TRIALS)
            row: dict[str, Any] = {"peer": name, "labels": design, "sets": sets}
            if "error" in answer:
                rows.append(row | {"error": answer["error"]})
                continue
            lower, upper = np.array(answer["result"]["values"]).T
            covered = float(((lower <= MU) & (upper >= MU)).mean())
            seconds = answer["result"]["seconds"]
            rows.append(row | {"coverage": covered, "width": float((upper - lower).mean()), "seconds": seconds})
    return rows


def _judged(rng: np.random.Generator, whole_tasks: bool) -> dict[str, Any]:
    """A judge's verdict of every attempt, and a human's of some."""
    p = success_probabilities(rng, MU, RHO, (TASKS,))
    true = rng.random((TASKS, TRIALS)) < p[:, None]
    judge = np.where(true, rng.random(true.shape) < SENSITIVITY, rng.random(true.shape) >= SPECIFICITY).ravel()
    order = (rng.permutation(TASKS)[:, None] * TRIALS + np.arange(TRIALS)).ravel()
    labelled = set((order if whole_tasks else rng.permutation(TASKS * TRIALS))[:LABELS].tolist())
    return {
        "task": np.repeat(np.arange(TASKS), TRIALS).tolist(),
        "trial": np.tile(np.arange(TRIALS), TASKS).tolist(),
        "judge": judge.astype(int).tolist(),
        "human": [int(x) if i in labelled else None for i, x in enumerate(true.ravel())],
        "whole_tasks": whole_tasks,
    }


def malformed(environments: Mapping[str, Environment]) -> dict[str, Any]:
    """The score that each package reads from each reply: `scores` by peer, or `error`."""
    replies = [reply for reply, _ in REPLIES.values()]
    found: dict[str, Any] = {}
    for name, environment in environments.items():
        answer = _judge(environment, replies)
        scores = answer["error"] if "error" in answer else map(_finite, answer["result"]["values"][0])
        found[name] = scores if isinstance(scores, str) else dict(zip(REPLIES, scores, strict=True))
    return found


def _finite(score: float | None) -> float | str | None:
    """A score that JSON can hold: infinity and NaN as text."""
    return score if score is None or np.isfinite(score) else str(score)


def long_run(environments: Mapping[str, Environment]) -> list[dict[str, Any]]:
    """CPU of judging `TURNS` turns with a model that answers at once, and the characters sent with the calls."""
    rows = []
    for name, environment in environments.items():
        answer = _judge(environment, [RIGHT] * TURNS)
        if "error" in answer:
            rows.append({"peer": name, "error": answer["error"]})
            continue
        sent, seconds = answer["result"]["sent"], answer["result"]["first_seconds"]
        rows.append({"peer": name, "seconds": seconds, "first": sent[0], "last": sent[-1], "total": sum(sent)})
    return rows


def _judge(environment: Environment, replies: list[str]) -> dict[str, Any]:
    return environment.call("judge", replies=replies, turns=[(QUERY, ANSWER, REFERENCE)] * len(replies))
