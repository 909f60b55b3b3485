"""An example suite that runs offline."""

from __future__ import annotations

import json
from pathlib import Path

from agentic_bayes.errors import InvalidArgument
from agentic_bayes.suite.config import json_schema

__all__ = ["write_example"]

_SUITE = """\
# yaml-language-server: $schema=./suite.schema.json
name: arithmetic
description: An agent that adds numbers, and is wrong now and then.

agent:
  type: python
  name: adder-v1
  config:
    function: "agent:answer"       # agent.py beside this file

defaults:
  trials_per_task: 5
  graders:
    - type: regex
      config: {pattern: "[0-9]+"}
    - type: contains
      weight: 2

execution:
  concurrency: 4
  timeout: 10s

task_files: [tasks/*.yaml]
"""
_TASKS = """\
- id: small
  tags: [easy]
  input: {prompt: "What is 2 + 3?"}
  expected: {fields: ["5"]}
- id: carry
  tags: [hard]
  input: {prompt: "What is 27 + 38?"}
  expected: {fields: ["65"]}
- id: three
  tags: [hard]
  input: {prompt: "What is 4 + 5 + 6?"}
  expected: {fields: ["15"]}
"""
_AGENT = '''\
"""An agent for trying things out: it adds the numbers in a prompt, and slips now and then."""

import random
import re


def answer(prompt: str, *, seed: int) -> str:
    """The sum, wrong in one of five cases; the same trial always gives the same answer."""
    total = sum(map(int, re.findall(r"[0-9]+", prompt)))
    return f"The sum is {total + (random.Random(seed).random() < 0.2)}."
'''


def write_example(folder: Path) -> list[Path]:
    """Write the suite, its tasks, its agent, and the JSON schema of suites.

    Parameters
    ----------
    folder : Path
        Where to; made if it is not there.

    Returns
    -------
    list of Path
        What was written.

    Raises
    ------
    InvalidArgument
        If one of the files is there already; then nothing is written.
    """
    files = {
        folder / "eval.yaml": _SUITE,
        folder / "tasks" / "sums.yaml": _TASKS,
        folder / "agent.py": _AGENT,
        folder / "suite.schema.json": json.dumps(json_schema(), indent=2) + "\n",
    }
    for path in files:
        if path.exists():
            raise InvalidArgument(f"{path} is there already: init writes nothing over it")
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return list(files)
