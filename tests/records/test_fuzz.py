"""Fuzz of every format: a changed file is refused, or what is lost of it is said; nothing ends in a traceback."""

import json
import random
import shutil
import warnings
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest
from dialogues import MARKED, WRITERS, smolagents
from test_inspect_format import SAMPLES, as_json
from test_langchain_format import DUMPS
from test_tau_formats import VALID
from test_trace_dialogues import WRITERS as TRACERS
from test_trace_dialogues import dialogue

from agentic_bayes.errors import DoubtfulRecords, RecordsError
from agentic_bayes.records.read import read_conversations

FILES = Path(__file__).parent / "files"
FOLDERS = {
    "messages": ("anthropic", "autogen", "bedrock", "gemini", "openai", "smolagents", "vercel"),
    "traces": ("otel", "langfuse", "langgraph", "langsmith", "mlflow", "openai_agents"),
    "sessions": ("claude_code_stream", "codex", "mini_swe_agent", "swe_agent"),
    "evals": ("cases", "inspect"),
}
RUNS = ("claude_code", "harbor", "terminal_bench")
"""Folders that are read whole."""


@dataclass(frozen=True)
class Example:
    """A file that can be read: its documents, what was read of them, and the folder that it is read with."""

    name: str
    documents: list  # one, or one per line
    read: dict[str, int]  # the texts of its queries, answers, calls and results, and how often the file has each
    errors: int  # how many turns have no answer
    folder: Path | None = None


def texts_of(value):
    """Every text in a value, also in JSON that is packed in text."""
    if isinstance(value, str):
        yield value
        yield from texts_of(packed_in(value))
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from texts_of(item)


def packed_in(text):
    try:
        return json.loads(text) if text[:1] in ("{", "[") else None
    except ValueError:
        return None


def told(conversations):
    """The texts of the queries, answers, calls and results."""
    for one in conversations:
        for turn in one.conversation:
            yield from texts_of([turn.query, turn.assistant])
            for call in turn.agentic.tools_used if turn.agentic else ():
                yield from texts_of([call.tool_name, call.parameters, call.result])


def example(name, documents, path, folder=None):
    """A file as it is, with what is read of it; None if it is refused."""
    try:
        found = list(read_conversations(folder or path))
    except RecordsError:
        return None
    there = Counter(texts_of(documents))
    read = {text: there[text] for text in told(found) if len(text) > 2 and there[text]}
    return Example(name, documents, read, errors_in(found), folder)


def errors_in(conversations):
    return sum(turn.error is not None for one in conversations for turn in one.conversation)


def documents_of(path):
    """The documents of a file."""
    text, found, at = path.read_text("utf-8").strip(), [], 0
    while at < len(text):
        one, at = json.JSONDecoder().raw_decode(text, at)
        found.append(one)
        at += len(text[at:]) - len(text[at:].lstrip())
    return found


def write(documents, path):
    """Write documents: one, or one per line."""
    path.write_text("\n".join(map(json.dumps, documents)), "utf-8")


def dialogues_of(family):
    """The names and documents of dialogues in the shapes of the formats."""
    if family == "messages":
        yield from ((name, [form[0](MARKED)]) for name, form in WRITERS.items())
        yield "smolagents", [smolagents(MARKED)]
        yield from ((name, [dump]) for name, dump in DUMPS.items())
    if family == "traces":
        yield from ((name, list(form(dialogue(seed)))) for name, form in TRACERS.items() for seed in (3, 8))
    if family == "evals":
        yield from ((name, [value]) for name, value in VALID.items())
        yield "inspect", [json.loads(as_json(SAMPLES))]


def corpus(family, folder):
    """The files of a family: those that tools wrote, and dialogues in the shape of each format."""
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DoubtfulRecords)
        for path in (path for name in FOLDERS[family] for path in sorted(FILES.glob(f"{name}/**/*.*"))):
            if path.suffix != ".eval":
                found.append(example(str(path.relative_to(FILES)), documents_of(path), path))
        for path in (
            path for name in RUNS * (family == "sessions") for path in sorted(FILES.glob(f"{name}/**/*.json*"))
        ):
            name = path.relative_to(FILES)
            found.append(example(str(name), documents_of(path), path, FILES / name.parts[0]))
        for name, documents in dialogues_of(family):
            write(documents, folder / "dialogue.jsonl")
            found.append(example(name, documents, folder / "dialogue.jsonl"))
    return [one for one in found if one is not None]


ODD = [None, "", " ", "x", 0, -1, 1.5, True, [], {}, [None], ["x"], [[]], {"type": "x"}, [{"type": "x"}]]
KINDS = ["tool_call", "new_tool_use", "text", "user", "assistant", "tool", "system", "reasoning", "result"]


def mutated(value, chance):
    """A JSON value with something changed at one place."""
    if isinstance(value, (dict, list)) and value and chance.random() < 0.9:
        copy = dict(value) if isinstance(value, dict) else list(value)
        key = chance.choice(list(copy)) if isinstance(copy, dict) else chance.randrange(len(copy))
        way = chance.random()
        if way < 0.06:
            del copy[key]
        elif way < 0.09 and isinstance(copy, dict):
            copy[chance.choice(("x", key + "s", key.upper()))] = copy.pop(key)
        elif way < 0.09:
            copy.insert(chance.randrange(len(copy) + 1), copy[key])
        elif way < 0.12 and isinstance(copy, list):
            chance.shuffle(copy)
        else:
            copy[key] = mutated(copy[key], chance)
        return copy
    way = chance.random()
    if way < 0.1:
        return [value]
    if way < 0.2:
        return json.dumps(value)
    if way < 0.45 and isinstance(value, str):
        packed = packed_in(value)
        return chance.choice(KINDS) if packed is None else json.dumps(mutated(packed, chance))
    return chance.choice(ODD)


def changed(one, chance):
    """The documents of a file with something changed at one place."""
    documents = list(one.documents)
    at = chance.randrange(len(documents))
    documents[at] = mutated(documents[at], chance)
    return documents


def lost(one, documents, folder):
    """The texts that are still in the changed file and are no longer read, although nothing was said."""
    path = folder / f"f{Path(one.name).suffix}"
    if one.folder is not None:
        shutil.rmtree(folder / "run", ignore_errors=True)
        shutil.copytree(one.folder, folder / "run")
        path = folder / "run" / Path(one.name).relative_to(one.folder.name)
    write(documents, path)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", DoubtfulRecords)
        try:
            found = list(read_conversations(path if one.folder is None else folder / "run"))
        except RecordsError:
            return set()
    assert found
    # a turn without an answer says so
    if said or errors_in(found) > one.errors:
        return set()
    read = "\n".join(texts_of([each.model_dump(mode="json") for each in found]))
    there = Counter(texts_of(documents))
    return {text for text, times in one.read.items() if there[text] >= times and text not in read}


@pytest.fixture(scope="module")
def known(tmp_path_factory):
    """The corpus of a family, made once."""
    return cache(lambda family: corpus(family, tmp_path_factory.mktemp(family)))


@pytest.mark.parametrize("family", FOLDERS)
@pytest.mark.parametrize("number", [25, pytest.param(10_000, marks=pytest.mark.slow)])
def test_nothing_in_a_changed_file_is_lost_in_silence(tmp_path, known, family, number):
    """Whatever is changed: the file is refused, each call, result and answer is read, or something is said."""
    for seed in range(number):
        chance = random.Random(seed)
        one = chance.choice(known(family))
        assert lost(one, changed(one, chance), tmp_path) == set(), f"{one.name}, seed {seed}"


@pytest.mark.parametrize(("family", "seed"), [("sessions", 2090), ("traces", 3865)])
def test_what_was_lost_once(tmp_path, known, family, seed):
    """A session's line whose parent is blank, and a span that begins before 1970."""
    chance = random.Random(seed)
    one = chance.choice(known(family))
    assert lost(one, changed(one, chance), tmp_path) == set()
