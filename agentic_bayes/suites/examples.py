"""The examples that come with the package, and a suite to begin with."""

from __future__ import annotations

import json
from pathlib import Path

from agentic_bayes.errors import InvalidArgument
from agentic_bayes.suites.config import SCHEMA_FILE, json_schema
from agentic_bayes.whole_files import replacing

_SUITE = ("eval.yaml", "tasks/sums.yaml", "agent.py")


def example_folder(name: str) -> Path:
    """The folder of an example."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "_examples" / name, package.parent / "examples" / name):
        if folder.is_dir():
            return folder
    raise InvalidArgument(f"the example {name} is not installed with this package")


def write_example_suite(folder: Path) -> list[Path]:
    """Write a suite, its tasks, its agent, and the JSON schema of suites."""
    source = example_folder("suite")
    texts = {name: (source / name).read_text(encoding="utf-8") for name in _SUITE}
    texts["eval.yaml"] = f"# yaml-language-server: $schema=./{SCHEMA_FILE}\n{texts['eval.yaml']}"
    texts[SCHEMA_FILE] = json.dumps(json_schema(), indent=2) + "\n"
    for name in texts:
        if (folder / name).exists():
            raise InvalidArgument(f"{folder / name} exists already, and init overwrites nothing")
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        with replacing(str(folder / name)) as file:
            file.write(text.encode())
    return [folder / name for name in texts]
