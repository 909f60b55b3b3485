"""Formats of messages: a dialogue comes back from each as it was written; files of the tools are read call by call."""

import json

import pytest
from dialogues import WRITERS, dialogues, expected, read_back
from hypothesis import HealthCheck, given, settings
from strategies import reduced

from agentic_bayes.records.read import read_conversations

quick = settings(max_examples=reduced(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def load(tmp_path):
    """The conversations of a value written as JSON, or of several as JSON Lines."""

    def run(value, *, lines=False, **options):
        path = tmp_path / "log.json"
        text = "\n".join(map(json.dumps, value)) if lines else json.dumps(value)
        path.write_text(text, encoding="utf-8")
        return list(read_conversations(path, **options))

    return run


@pytest.mark.parametrize("name", WRITERS)
@given(dialogue=dialogues())
@quick
def test_a_dialogue_written_in_any_format_is_read_back(load, name, dialogue):
    """Parallel calls, repeated ids, errors, thoughts and images give the same turns, calls, results and answers."""
    write, errors, system, tools = WRITERS[name]
    (found,) = load(write(dialogue), format=name.partition(" ")[0])
    assert read_back(found) == expected(dialogue, errors=errors)
    assert (found.context or "") == (dialogue.system if system else "")
    offered = found.metadata.get("available_tools", [])
    assert {tool["name"] for tool in offered} == (set(dialogue.tools) if tools else set())
    last = found.conversation[-1]
    assert (last.error is None) == (dialogue.turns[-1].answer is not None)
