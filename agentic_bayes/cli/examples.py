"""The examples that come with the package: in a checkout beside it, else inside of it."""

from __future__ import annotations

import json
from pathlib import Path

from agentic_bayes.errors import InvalidArgument

__all__ = ["example_folder", "write_suite"]

_SUITE = ("eval.yaml", "tasks/sums.yaml", "agent.py")
_SCHEMA = "suite.schema.json"


def example_folder(name: str) -> Path:
    """Where the files of an example are."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "_examples" / name, package.parent / "examples" / name):
        if folder.is_dir():
            return folder
    raise InvalidArgument(f"the example {name} is not installed with this package")


def write_suite(folder: Path) -> list[Path]:
    """Write a suite, its tasks, its agent, and the JSON schema of suites."""
    from agentic_bayes.suites.config import json_schema

    source = example_folder("suite")
    texts = {name: (source / name).read_text(encoding="utf-8") for name in _SUITE}
    texts["eval.yaml"] = f"# yaml-language-server: $schema=./{_SCHEMA}\n{texts['eval.yaml']}"
    texts[_SCHEMA] = json.dumps(json_schema(), indent=2) + "\n"
    for name in texts:
        if (folder / name).exists():
            raise InvalidArgument(f"{folder / name} is there already: init writes nothing over it")
    for name, text in texts.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return [folder / name for name in texts]
