"""The rooms of `records`: formats know the wire, the wire knows no format, and one module lists the formats."""

import ast
import pkgutil
import re
from importlib import import_module
from pathlib import Path
from typing import get_args

from agentic_bayes.records import formats, wire
from agentic_bayes.records.formats.detection import FORMATS, READERS, RecordFormat

WIRE = sorted(Path(wire.__file__).parent.glob("*.py"))
TOOLS = re.compile(r"langchain|openai|anthropic|tau2|tau-bench|\binspect\b|otel|opentelemetry", re.IGNORECASE)


def readers():
    """Every module of `formats` that reads a whole file."""
    names = (module.name for module in pkgutil.walk_packages(formats.__path__, f"{formats.__name__}."))
    modules = (import_module(name) for name in names)
    return [module for module in modules if hasattr(module, "NAME")]


def test_the_wire_imports_no_format_and_names_no_tool():
    """What readers share must not change when a format is added."""
    for path in WIRE:
        text = path.read_text("utf-8")
        assert ".formats" not in text, path.name
        assert not TOOLS.findall(text), path.name


def test_every_module_of_a_format_is_in_the_list_of_formats():
    """A reader that nobody lists is never tried; each recognises its files and reads them."""
    named = {module.NAME for module in readers()}
    assert named == set(get_args(RecordFormat)) - {"auto", "native"} == set(FORMATS) - {"auto", "native"}
    for module in readers():
        reader = READERS[module.NAME]
        assert (reader.recognises, reader.read) == (module.recognises, module.read)


def test_every_module_begins_with_a_sentence_about_what_it_holds():
    """The first line of the docstring is what the page on the architecture shows."""
    for path in sorted(Path(formats.__file__).parents[1].rglob("*.py")):
        first = (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").partition("\n")[0]
        assert first.endswith("."), f"{path.name}: {first!r}"
