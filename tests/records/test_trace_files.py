"""Traces that tools wrote, read call by call."""

from pathlib import Path

import pytest

from agentic_bayes.records.read import read_conversations

FILES = Path(__file__).parent / "files"

WEATHER = ("weather", {"city": "Oslo"}, "4 C")
TURN = ("How warm in Oslo?", "It is 4 C in Oslo.", WEATHER)


def reading(path, **options):
    """The trials of a file: agent, task, trial, and per turn the query, the answer and the calls with their results."""
    return [
        (
            one.assistant_id,
            one.task_id,
            one.trial,
            *(
                (
                    turn.query,
                    turn.assistant,
                    *(
                        (call.tool_name, call.parameters, call.result if call.has_result else "no result")
                        for call in (turn.agentic.tools_used if turn.agentic else ())
                    ),
                )
                for turn in one.conversation
            ),
        )
        for one in read_conversations(FILES / path, **options)
    ]


SPOKEN_WEATHER = TURN[:2]
TWO_TRACES = ["99f03b823f082e34fe79b91f05ddd995", "36ebdf7a13b652db7ef3c3f1d21a8c36"]

READINGS = {
    # one call per turn, though two spans report it with different wrappings
    "otel/otel_trl_langchain.jsonl": [("LangGraph", "t1", None, TURN, TURN)],
    # the wrapper names the task: two trials of it
    "otel/otel_trl_openai.jsonl": [("wx-agent", "oslo", None, TURN)] * 2,
    "otel/otel_testcase.jsonl": [("wx-agent", "oslo", None, TURN)] * 2,
    "otel/otel_oinf_openai.jsonl": [
        ("wx-agent", "1988f6a1f97bfffebf89eb2c9b964384", None, TURN),
        ("wx-agent", "ca2725e2cb0c592a1d9b17b9120243d1", None, TURN),
    ],
    "otel/otel_logfire_openai.jsonl": [
        ("otel_logfire_openai", "01a222328e87d2d172ce48809619d89d", None, SPOKEN_WEATHER),
        ("otel_logfire_openai", "01a222328eb86e643af9cabb7955c2f8", None, SPOKEN_WEATHER),
    ],
    # ids that repeat: the arguments and the order tell the calls apart
    "otel/otel_same_call_id.json": [
        (
            "otel_same_call_id",
            "a" * 32,
            None,
            ("Oslo and Rome?", "4 and 20", ("weather", {"city": "Oslo"}, "4"), ("weather", {"city": "Rome"}, "20")),
        )
    ],
    # the agent to whom the first one handed the user over speaks last
    "otel/otel_hand_off_nested.json": [
        ("root", "a" * 32, None, ("Oslo and Rome?", "4 and 20", ("transfer_to_weather", {}, "no result")))
    ],
}


@pytest.mark.filterwarnings("ignore::agentic_bayes.errors.DoubtfulRecords")
@pytest.mark.parametrize("name", READINGS)
def test_a_file_that_a_tool_wrote_is_read_as_it_happened(name):
    """Each call once, with its result; the answer is the last thing said to the user."""
    assert reading(name) == READINGS[name]
