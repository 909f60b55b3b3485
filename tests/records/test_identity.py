import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import identifiers, reduced

from agentic_bayes.errors import RecordsError
from agentic_bayes.records.identity import Identity, TaskIndex, task_label
from agentic_bayes.records.model import Conversation


def attempt(session, qa_ids="q", *, agent="v1", **fields):
    """A conversation; every letter of `qa_ids` is the id of one turn."""
    turns = [{"qa_id": qa_id, "query": "?", "assistant": "a"} for qa_id in qa_ids]
    data = {"session_id": session, "assistant_id": agent, "conversation": turns, **fields}
    return Conversation.model_validate(data)


def resolve(*conversations):
    index = TaskIndex()
    positions = [index.add(conversation) for conversation in conversations]
    assert positions == list(range(len(conversations)))
    return [(identity.task, identity.trial) for identity in index.resolve()]


def problems(*conversations):
    index = TaskIndex()
    for line, conversation in enumerate(conversations, start=1):
        index.add(conversation, source="f.jsonl", where=f"line {line}")
    with pytest.raises(RecordsError, match="in the conversations") as caught:
        index.resolve()
    assert list(caught.value.problems) == index.problems()
    return [str(problem) for problem in caught.value.problems]


def test_the_task_is_the_task_id_else_the_ordered_qa_ids():
    """A given task_id wins; without one, the same questions in the same order are the same task."""
    found = resolve(
        attempt("s1", "ab", task_id="refund"),
        attempt("s2", "ab"),
        attempt("s3", "ba"),
        attempt("s4", "ab"),
        attempt("s5", ["a"]),
    )
    assert found == [("refund", 0), ("a|b", 0), ("b|a", 0), ("a|b", 1), ("a", 0)]


@given(st.lists(identifiers, min_size=1, max_size=4), st.lists(identifiers, min_size=1, max_size=4))
@settings(max_examples=reduced(200), deadline=None)
def test_different_qa_ids_have_different_labels(one, other):
    """The label of the qa_ids is injective."""
    assert (task_label(one) == task_label(other)) == (one == other)


@pytest.mark.parametrize(
    ("one", "other"),
    [(["a|b"], ["a", "b"]), (["a\\", "b"], ["a\\|b"]), (["a\\|b"], ["a|b"]), (["|"], ["", ""])],
)
def test_separators_within_qa_ids_do_not_merge_tasks(one, other):
    """A bar or a backslash within an id is not taken for the bar between two."""
    assert task_label(one) != task_label(other)
    assert task_label(["q1"]) == "q1"


def test_missing_trials_are_numbered_by_session_id_within_agent_and_task():
    """The numbers follow the text order of the session ids, not the order of the records."""
    found = resolve(
        attempt("s9"),
        attempt("s10"),
        attempt("s1"),
        attempt("s5", agent="v2"),
        attempt("s0", "z"),
        attempt("s2"),
    )
    assert found == [("q", 3), ("q", 1), ("q", 0), ("q", 0), ("z", 0), ("q", 2)]


def test_given_trials_are_kept():
    """Given numbers need not begin at 0 nor be without gaps."""
    assert resolve(attempt("b", trial=7), attempt("a", trial=2)) == [("q", 7), ("q", 2)]


def test_given_and_missing_trials_may_not_mix_within_a_task_of_an_agent():
    """Numbering the missing ones could hit a given number; both places are named."""
    assert problems(attempt("a", trial=1), attempt("b"), attempt("c", agent="v2"), attempt("d", "z")) == [
        "f.jsonl, line 2, trial: must be given for all trials of task 'q' of agent 'v1' or for none; "
        "it is missing here and given at f.jsonl, line 1"
    ]


def test_a_repeated_session_or_trial_names_both_places():
    """All duplicates are reported together, in the order of their lines."""
    found = problems(
        attempt("a", trial=0),
        attempt("b", trial=0),
        attempt("c", "z"),
        attempt("c", "y"),
        attempt("c", "x", agent="v2"),
        *(attempt(f"d{n}", str(n)) for n in range(5)),
        attempt("c", "w"),
    )
    session = "session_id: must be unique within an agent, got 'c' of agent 'v1' also at f.jsonl, line 3"
    assert found == [
        "f.jsonl, line 2, trial: must be unique within a task, got 0 of task 'q' of agent 'v1' also at f.jsonl, line 1",
        f"f.jsonl, line 4, {session}",
        f"f.jsonl, line 11, {session}",
    ]


def test_the_same_record_twice_is_one_problem():
    """A repeated record is a repeated session; that its trial is repeated too goes without saying."""
    (problem,) = problems(attempt("a", trial=0), attempt("a", trial=0))
    assert "session_id: must be unique" in problem


def test_without_a_file_the_number_of_the_conversation_is_named():
    """Conversations that come from code have a place too."""
    with pytest.raises(RecordsError, match=r"conversation 1, session_id: .* also at conversation 0"):
        resolve(attempt("a"), attempt("a"))


def test_an_interrupted_conversation_belongs_to_the_one_task_that_begins_with_its_qa_ids():
    """A crash after the first turn is a trial of the task, whichever agent's records show the whole of it."""
    found = resolve(
        attempt("s1", "a", error="boom"),
        attempt("s2", "ab", agent="v2", error="boom"),
        attempt("s3", "abc", agent="v2"),
        attempt("s4", "ab", error="boom"),
    )
    assert found == [("a|b|c", 0), ("a|b|c", 0), ("a|b|c", 1), ("a|b|c", 1)]


def test_an_interrupted_conversation_finds_a_task_that_has_a_task_id():
    """The qa_ids of a named task are known from its other trials."""
    found = resolve(attempt("s1", "abc", task_id="refund"), attempt("s2", "a", error="boom"))
    assert found == [("refund", 0), ("refund", 1)]


def test_an_interrupted_conversation_with_all_turns_belongs_to_the_task_with_the_same_qa_ids():
    """A crash at the last turn leaves nothing out."""
    assert resolve(attempt("s1", "ab"), attempt("s2", "ab", error="boom")) == [("a|b", 0), ("a|b", 1)]


@pytest.mark.parametrize(
    ("others", "says"),
    [
        ([], "no other task begins with its qa_ids ['a']"),
        ([("x", {})], "no other task begins with"),
        ([("ab", {}), ("ac", {})], "2 tasks begin with its qa_ids ['a'] ('a|b', 'a|c')"),
        ([("a", {}), ("ab", {})], "2 tasks begin with its qa_ids ['a'] ('a', 'a|b')"),
        ([("a", {"task_id": "t"}), ("a", {})], "2 tasks begin with its qa_ids ['a'] ('a', 't')"),
    ],
)
def test_an_interrupted_conversation_whose_task_cannot_be_told_is_refused(others, says):
    """None or several tasks that could be meant: the advice is to give `task_id`."""
    known = [attempt(f"k{n}", qa_ids, **fields) for n, (qa_ids, fields) in enumerate(others)]
    (problem,) = problems(attempt("s", "a", error="boom"), *known)
    assert problem.startswith("f.jsonl, line 1, task_id: give `task_id`: the agent stopped with an error")
    assert says in problem
    assert resolve(attempt("s", "a", error="boom", task_id="mine"), *known)[0] == ("mine", 0)


def test_of_interrupted_conversations_that_fit_together_only_the_longest_is_asked_for_its_task():
    """Once the longest has a task_id, the shorter ones belong to it."""
    short, long = attempt("s1", "a", error="boom"), {"qa_ids": "ab", "error": "boom"}
    (problem,) = problems(short, attempt("s2", **long))
    assert "line 2, task_id" in problem
    assert resolve(short, attempt("s2", **long, task_id="t")) == [("t", 0), ("t", 1)]


def test_a_failed_turn_does_not_make_a_conversation_incomplete():
    """`error` on an interaction says nothing of missing turns: the task is its qa_ids."""
    turns = [{"qa_id": "a", "query": "?", "assistant": None, "error": "timeout"}]
    assert resolve(attempt("s1", conversation=turns), attempt("s2", "ab")) == [("a", 0), ("a|b", 0)]


def test_a_name_made_from_qa_ids_may_not_be_the_task_id_of_other_questions():
    """Two tasks never become one by having the same name."""
    (problem,) = problems(attempt("s1", "ab", task_id="x"), attempt("s2", "x"), attempt("s3", "x"))
    assert "line 2, task_id: give `task_id`: without one, this task is named 'x' after its qa_ids" in problem
    assert problem.endswith("but f.jsonl, line 1 has that task_id and other qa_ids")
    assert resolve(attempt("s1", "x", task_id="x"), attempt("s2", "x")) == [("x", 0), ("x", 1)]


def test_what_further_conversations_might_put_right_is_left_out_on_request():
    """While some records cannot be read, nobody is told to give `task_id` because of them."""
    index = TaskIndex()
    for conversation in (attempt("s", "a", error="boom"), attempt("t", "b"), attempt("t", "c")):
        index.add(conversation)
    assert [p.field for p in index.problems()] == ["task_id", "session_id"]
    assert [p.field for p in index.problems(complete=False)] == ["session_id"]


attempts = st.builds(
    lambda session, qa_ids, agent, fields: attempt(session, qa_ids, agent=agent, **fields),
    st.sampled_from(["s1", "s2", "s3", "s4", "s5", "s6", "s7"]),
    st.sampled_from(["a", "ab", "abc", "b", "ac"]),
    st.sampled_from(["v1", "v2"]),
    st.fixed_dictionaries(
        {},
        optional={
            "task_id": st.sampled_from(["t", "a", "a|b"]),
            "error": st.just("boom"),
            "trial": st.integers(0, 3),
        },
    ),
)


@given(st.lists(attempts, min_size=1, max_size=8), st.randoms(use_true_random=False))
@settings(max_examples=reduced(300), deadline=None)
def test_identities_and_problems_do_not_depend_on_the_order(conversations, shuffle: random.Random):
    """Each record has the same identity, or the same problem, wherever it stands."""

    def outcome(order):
        index = TaskIndex()
        for n in order:
            index.add(conversations[n], source="f", where=f"line {n}")
        try:
            return dict(zip(order, index.resolve(), strict=True))
        except RecordsError as error:
            return str(error)

    order = list(range(len(conversations)))
    shuffled = order.copy()
    shuffle.shuffle(shuffled)
    assert outcome(order) == outcome(shuffled)


@given(st.lists(attempts, min_size=1, max_size=8))
@settings(max_examples=reduced(300), deadline=None)
def test_no_two_conversations_share_an_identity(conversations):
    """What resolves has one trial per agent, task and number, and keeps what was given."""
    index = TaskIndex()
    for conversation in conversations:
        index.add(conversation)
    try:
        identities = index.resolve()
    except RecordsError:
        return
    assert len({(c.assistant_id, i) for c, i in zip(conversations, identities, strict=True)}) == len(conversations)
    for conversation, identity in zip(conversations, identities, strict=True):
        assert isinstance(identity, Identity)
        assert conversation.task_id in (None, identity.task)
        assert conversation.trial in (None, identity.trial)
