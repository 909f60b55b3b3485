import asyncio
import contextvars
import itertools
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading

import anyio
import anyio.lowlevel
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scripted import by_answer, conversation, in_turn, turn, verdict
from strategies import reduced

from agentic_bayes.errors import EvidenceError, InvalidArgument, RecordsError, StoppedEarly
from agentic_bayes.evidence.assess import assess, assess_async
from agentic_bayes.evidence.llm.judge import LLMJudge
from agentic_bayes.evidence.score import Score, Unscored
from agentic_bayes.evidence.tools.rubric import ToolRubric

EXPECTED = {"expected_tools": [{"tool_name": "calculator", "parameters": {"a": 5}}]}
CALLED = {"tools_used": [{"tool_name": "calculator", "parameters": {"a": 5}}], "final_answer_uses_tools": True}


class Judge:
    """A grader made of a function of the interaction."""

    def __init__(self, function=lambda turn: Score(1.0, "right"), name="judge"):
        self.function = function
        self.name = name
        self.identity = f"{name}/1"
        self.calls = 0

    def grade(self, conversation, position):
        """Count the call and apply the function."""
        self.calls += 1
        return self.function(conversation.conversation[position])


class AsyncJudge(Judge):
    """The same, with a pause in each judgement."""

    async def grade(self, conversation, position):
        """Pause before and after."""
        await anyio.sleep(random.random() / 1000)
        result = super().grade(conversation, position)
        await anyio.lowlevel.checkpoint()
        return result


def many(count, turns=2, **fields):
    """Conversations of one task, with answers that are all different."""
    return [
        conversation(*(turn(f"q{j}", f"a{i}.{j}", **fields) for j in range(turns)), session=f"s{i:03}")
        for i in range(count)
    ]


def raiser(error):
    def function(turn):
        raise error

    return function


def test_every_interaction_is_a_row():
    """Identity, score and reason, tool scores and graders stand in each row."""
    convs = [conversation(turn(agentic=CALLED, ground_truth_agentic=EXPECTED), turn("q2"), task_id="sum", trial=3)]
    first, second = assess(convs, judge=Judge())
    assert (first.agent, first.task, first.trial, first.session_id, first.interaction, first.qa_id) == (
        "v1", "sum", 3, "s1", 0, "q1",
    )  # fmt: skip
    assert (first.answer_score, first.answer_reason, first.unscored_reason) == (1.0, "right", None)
    assert (first.selection, first.parameters, first.sequence, first.utilization) == (1, 1, 1, 1)
    assert (first.tool_overall, first.tools_correct) == (1, True)
    assert (first.judge, first.tool_rubric) == ("judge/1", ToolRubric().identity)
    assert (second.interaction, second.tool_overall, second.tools_correct, second.tool_reason) == (1, None, None, None)


def test_calls_that_were_not_recorded_are_unscored():
    """Expectations without recorded calls give a reason and no tool score."""
    (found,) = assess([conversation(turn(ground_truth_agentic=EXPECTED))], judge=Judge())
    assert (found.tool_overall, found.tools_correct) == (None, None)
    assert found.tool_reason == "tool calls were not recorded"
    assert found.answer_score == 1.0


def test_utilization_that_could_not_be_told_is_missing():
    """NaN of the rubric is None in the row."""
    made = {"tools_used": [{"tool_name": "calculator", "parameters": {"a": 5}}]}
    (found,) = assess([conversation(turn(agentic=made, ground_truth_agentic=EXPECTED))], judge=Judge())
    assert (found.utilization, found.tool_overall) == (None, 1.0)


def test_trials_are_numbered_by_session():
    """Without `trial`, the attempts of a task are numbered by session_id, whatever the order of arrival."""
    found = assess(reversed(many(3)), judge=Judge())
    assert [(r.session_id, r.trial, r.interaction) for r in found] == [
        (f"s00{i}", i, j) for i in range(3) for j in range(2)
    ]


@given(st.permutations(range(6)), st.sampled_from([1, 2, 3, 8, 1000]), st.booleans())
@settings(max_examples=reduced(25), deadline=None)
def test_neither_order_nor_concurrency_changes_the_evidence(order, concurrency, lazy):
    """Shuffled conversations and any number of workers give equal evidence."""
    convs = many(6, agentic=CALLED, ground_truth_agentic=EXPECTED)
    scores = {f"a{i}.{j}": Score((i + j) / 10, f"{i}{j}") for i in range(6) for j in range(2)}
    shuffled = [convs[i] for i in order]
    found = assess(
        iter(shuffled) if lazy else shuffled,
        judge=AsyncJudge(lambda turn: scores[turn.assistant]),
        metrics=[AsyncJudge(lambda turn: Unscored(f"about {turn.assistant}"), name="m")],
        concurrency=concurrency,
    )
    assert found == assess(convs, judge=Judge(lambda turn: scores[turn.assistant]), metrics=[
        Judge(lambda turn: Unscored(f"about {turn.assistant}"), name="m")
    ])  # fmt: skip


@pytest.mark.parametrize("concurrency", [1, 3, 50])
def test_no_more_than_the_given_number_is_judged_at_a_time(concurrency):
    """A pool of workers pulls from one iterator; nothing is pulled before a worker is free."""
    pulled, running, expected = [], [0], min(concurrency, 20)

    class Counting(Judge):
        all_there = anyio.Event()

        async def grade(self, conversation, position):
            running[0] += 1
            assert running[0] <= concurrency
            assert len(pulled) <= self.calls + concurrency
            if running[0] == expected:
                self.all_there.set()
            with anyio.fail_after(5):
                await self.all_there.wait()
            running[0] -= 1
            return super().grade(conversation, position)

    def source():
        for item in many(20, turns=1):
            pulled.append(item)
            yield item

    assert assess(source(), judge=Counting(), concurrency=concurrency).unscored == 0


@pytest.mark.parametrize("kind", [Judge, AsyncJudge])
def test_a_judge_that_raises_is_unscored_and_not_zero(kind):
    """An exception becomes the reason; the other interactions keep their scores."""

    def function(turn):
        if turn.assistant == "a1.0":
            raise TimeoutError("no answer from the provider")
        return Score(0.9, "right")

    found = assess(many(2), judge=kind(function))
    assert [r.answer_score for r in found] == [0.9, 0.9, None, 0.9]
    assert found.rows[2].unscored_reason == "TimeoutError: no answer from the provider"


def test_one_429_of_four_is_three_scored_one_unscored():
    """A rate limit on every attempt moves no number of the other interactions."""

    async def sleep(seconds):
        pass

    replies = {f"a{i}.{j}": verdict(0.95) for i in range(2) for j in range(2)}
    everything = assess(many(2), judge=LLMJudge(by_answer(replies)))
    replies["a1.1"] = RuntimeError("Error code: 429 - Too Many Requests")
    found = assess(many(2), judge=LLMJudge(by_answer(replies), sleep=sleep))
    assert repr(found) == "Evidence: 4 interactions (3 scored, 1 unscored) of 2 conversations, 1 agent"
    assert found.rows[:3] == everything.rows[:3]
    assert found.rows[3].unscored_reason == "RuntimeError: Error code: 429 - Too Many Requests"


@pytest.mark.parametrize("grade", [0.9, None, True, "right", {"score": 1}], ids=repr)
def test_a_grader_that_gives_something_else_is_unscored(grade):
    """Only Score and Unscored are grades."""
    (found,) = assess([conversation()], judge=Judge(lambda turn: grade))
    assert found.answer_score is None
    assert found.unscored_reason.startswith("judge must give a Score or Unscored, got ")


@pytest.mark.parametrize(("reason", "kept"), [(None, ""), (5, "5")])
def test_an_odd_reason_does_not_lose_a_score(reason, kept):
    """A score was paid for; its reason is kept as text."""
    odd = Judge(lambda turn: Score(0.5, reason, details=None), name="m")
    (found,) = assess([conversation()], judge=odd, metrics=[odd])
    assert (found.answer_score, found.answer_reason) == (0.5, kept)
    assert found.metrics == {"m": Score(0.5, kept)}


def test_a_crashed_agent_is_not_judged():
    """Its turns are unscored with the reason, for the tools too where some were expected."""
    judge, metric = Judge(), Judge(name="m")
    convs = [
        conversation(
            turn("q1"),
            turn("q2", None, ground_truth_agentic=EXPECTED),
            turn("q3", None),
            task_id="t",
            error="connection reset",
        )
    ]
    found = assess(convs, judge=judge, metrics=[metric])
    assert [r.unscored_reason for r in found] == [None] + ["agent error: connection reset"] * 2
    assert [r.tool_reason for r in found] == [None, "agent error: connection reset", None]
    assert found.rows[1].metrics == {"m": Unscored("agent error: connection reset")}
    assert (judge.calls, metric.calls) == (1, 1)


def test_only_a_crashed_agent_has_the_reason_of_one():
    """A judge cannot make its own failure look like the agent's."""
    (found,) = assess([conversation()], judge=Judge(lambda turn: Unscored("agent error: 429")))
    assert found.unscored_reason == "judge: agent error: 429"


def test_further_metrics_are_columns():
    """Each metric's grade is kept under its name."""
    metrics = [Judge(lambda turn: Score(0.25, "slow"), name="speed"), Judge(raiser(ValueError("no")), name="tone")]
    (found,) = assess([conversation()], judge=Judge(), metrics=metrics)
    assert found.metrics == {"speed": Score(0.25, "slow"), "tone": Unscored("ValueError: no")}


def test_progress_counts_the_interactions():
    """The total is known for lists and not for iterators."""
    seen = []
    assess(many(2), judge=Judge(), progress=lambda done, total: seen.append((done, total)))
    assess(iter(many(1)), judge=Judge(), progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4), (1, None), (2, None)]


BAD_ARGUMENTS = [
    ({"judge": Judge}, r"judge must have `name`, `identity` and `grade`.*LLMJudge\(model\)"),
    ({"judge": None}, r"judge must have"),
    ({"judge": in_turn("x")}, r"judge must have"),
    ({"tool_rubric": None}, r"tool_rubric must be a ToolRubric .*, got NoneType"),
    ({"metrics": [None]}, r"metrics must have"),
    ({"metrics": [Judge(name=" ")]}, r"metrics must have a name and an identity that are text, got ' '"),
    ({"metrics": Judge()}, r"metrics must be a list of graders"),
    ({"metrics": [Judge(name="m"), Judge(name="m")]}, r"'m' is taken"),
    ({"metrics": [Judge(name="agent")]}, r"'agent' is taken"),
    ({"metrics": [Judge(name="joint")]}, r"'joint' is taken"),
    ({"concurrency": 0}, r"concurrency must be an integer ≥ 1, got 0"),
    ({"concurrency": True}, r"concurrency must be an integer ≥ 1, got True"),
    ({"concurrency": 2.5}, r"concurrency must be an integer ≥ 1, got 2\.5"),
    ({"progress": 1}, r"progress must be callable, or False to show none, got 1"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD_ARGUMENTS)
def test_arguments_are_checked_before_anything_is_pulled(arguments, message):
    """No conversation is read and nothing is judged with a bad argument."""

    def source():
        pytest.fail("pulled")
        yield

    with pytest.raises(InvalidArgument, match=message):
        assess(source(), **{"judge": Judge()} | arguments)


@pytest.mark.parametrize("given", ["runs.jsonl", conversation(), None, 5])
def test_conversations_must_be_an_iterable_of_them(given):
    """A path or a single conversation is told what is expected."""
    with pytest.raises(InvalidArgument, match=r"conversations must be an iterable of Conversation"):
        assess(given, judge=Judge())


def test_a_list_is_checked_before_the_first_judgement():
    """Something else in a list, or a session_id given twice, costs no judge call."""
    judge = Judge()
    with pytest.raises(EvidenceError, match=r"conversations\[1\] must be a Conversation, got \{'session_id'"):
        assess([conversation(), {"session_id": "s2"}], judge=judge)
    with pytest.raises(RecordsError, match=r"s1"):
        assess([conversation(), conversation()], judge=judge)
    assert judge.calls == 0


@pytest.mark.parametrize("nothing", [[], iter([])], ids=["list", "iterator"])
def test_no_conversations_is_an_error(nothing):
    """An empty data set has no evidence."""
    with pytest.raises(EvidenceError, match=r"there are no conversations to assess"):
        assess(nothing, judge=Judge())


def test_a_bad_record_in_a_pipe_keeps_what_was_judged():
    """The error of an iterator is raised with the evidence so far."""

    def source():
        yield from many(2)
        raise RecordsError([])

    with pytest.raises(RecordsError, match=r"problems") as caught:
        assess(source(), judge=AsyncJudge())
    assert caught.value.evidence == assess(many(2), judge=Judge())
    assert "has the 4 interactions judged before" in caught.value.__notes__[0]


def test_conversations_of_an_iterator_that_do_not_fit_keep_what_was_judged():
    """A session_id given twice is an error; the evidence on it has provisional trials."""
    with pytest.raises(RecordsError, match=r"s000") as caught:
        assess(itertools.chain(many(2), many(1)), judge=Judge())
    assert caught.value.evidence.scored == 6


def test_an_error_of_progress_keeps_what_was_judged():
    """The rest is unscored with that reason."""
    with pytest.raises(ZeroDivisionError, match=r"division") as caught:
        assess(many(3), judge=Judge(), progress=lambda done, total: 1 / (2 - done), concurrency=1)
    evidence = caught.value.evidence
    assert (evidence.scored, evidence.unscored) == (2, 4)
    assert evidence.rows[5].unscored_reason.startswith("stopped: ZeroDivisionError: ")


def stop_at(answer, error):
    def function(turn):
        if turn.assistant == answer:
            raise error
        return Score(1.0, "right")

    return function


@pytest.mark.parametrize("kind", [Judge, AsyncJudge])
def test_ctrl_c_keeps_what_was_judged(kind):
    """KeyboardInterrupt in a judge ends the run; the rest of a list is unscored."""
    with pytest.warns(StoppedEarly, match=r"3 scored, 5 unscored"):
        found = assess(many(4), judge=kind(stop_at("a1.1", KeyboardInterrupt())), concurrency=1)
    assert found.stopped == "interrupted"
    assert [r.answer_score for r in found] == [1.0] * 3 + [None] * 5
    assert {r.unscored_reason for r in found.rows[3:]} == {"stopped: interrupted"}


def test_ctrl_c_keeps_the_conversations_read_from_an_iterator():
    """What was not yet read is not in the evidence."""
    with pytest.warns(StoppedEarly, match=r"3 scored, 1 unscored"):
        found = assess(iter(many(4)), judge=Judge(stop_at("a1.1", KeyboardInterrupt())), concurrency=1)
    assert len(found) == 4


@pytest.mark.parametrize("concurrency", [1, 4])
def test_ctrl_c_inside_a_chat_model_keeps_what_was_judged(concurrency):
    """LangChain runs the model in tasks of its own; the interrupt still ends the run in order."""
    replies = {f"a{i}.{j}": verdict(0.95) for i in range(4) for j in range(2)}
    replies["a3.1"] = KeyboardInterrupt()
    with pytest.warns(StoppedEarly, match=r"scored"):
        found = assess(many(4), judge=LLMJudge(by_answer(replies)), concurrency=concurrency)
    assert found.stopped == "interrupted"
    assert found.scored >= 4
    assert found.rows[7].unscored_reason == "stopped: interrupted"


def test_ctrl_c_between_judge_and_metric_keeps_the_judgement():
    """Each grade is kept from the moment it is given."""
    metric = Judge(raiser(KeyboardInterrupt()), name="m")
    with pytest.warns(StoppedEarly, match=r"1 scored, 1 unscored"):
        found = assess(many(1), judge=Judge(), metrics=[metric])
    assert found.rows[0].answer_score == 1.0
    assert found.rows[0].metrics == {"m": Unscored("stopped: interrupted")}


def test_system_exit_is_not_a_score():
    """A grader that exits ends the program, with the evidence on the exception."""
    with pytest.raises(SystemExit, match=r"3") as caught:
        assess(many(2), judge=Judge(stop_at("a1.0", SystemExit(3))), concurrency=1)
    assert caught.value.evidence.scored == 2


def test_any_ending_of_a_grader_leaves_the_evidence():
    """An exception that is no error, as test runners raise them, carries what was judged."""

    class Outcome(BaseException):
        pass

    with pytest.raises(Outcome, match=r"enough") as caught:
        assess(many(2), judge=Judge(stop_at("a1.0", Outcome("enough"))), concurrency=1)
    assert caught.value.evidence.scored == 2


@pytest.mark.parametrize("kind", [Judge, AsyncJudge])
def test_a_cancelled_call_of_a_judge_does_not_cancel_the_run(kind):
    """A client that gives up on its own request is one reason; the others are judged."""
    found = assess(many(2), judge=kind(stop_at("a0.1", asyncio.CancelledError("gave up"))), concurrency=1)
    assert [r.answer_score for r in found] == [1.0, None, 1.0, 1.0]
    assert found.rows[1].unscored_reason == "CancelledError: gave up"
    assert found.stopped is None


def test_a_grader_may_assess():
    """A run inside a run, in the thread or in the loop of the outer one, has a loop of its own."""
    inner = Judge(lambda turn: Score(assess([conversation()], judge=Judge()).rows[0].answer_score))
    assert assess(many(2), judge=inner).scored == 4


@pytest.mark.parametrize("pause", ["await anyio.sleep(30)", "time.sleep(0.3)"], ids=["async", "sync"])
def test_a_real_sigint_keeps_what_was_judged(tmp_path, pause):
    """Ctrl-C in a terminal: the process ends soon, with evidence of everything judged before."""
    script = tmp_path / "run.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import signal, time, warnings, anyio
            from agentic_bayes.records.model import Conversation, Interaction
            from agentic_bayes.evidence.assess import assess
            from agentic_bayes.evidence.score import Score

            class Slow:
                name = identity = "slow"
                async def grade(self, conversation, position):
                    if conversation.session_id != "s0":
                        print("waiting", flush=True)
                        {pause}
                    return Score(1.0)

            warnings.simplefilter("ignore")
            signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
            turn = Interaction(qa_id="q", query="", assistant="")
            convs = [
                Conversation(session_id=f"s{{i}}", assistant_id="v1", conversation=[turn]) for i in range(500)
            ]
            found = assess(convs, judge=Slow(), concurrency=2)
            print(found.stopped, 1 <= found.scored < 20, found.rows[-1].unscored_reason)
            """
        )
    )
    command, env = [sys.executable, script], os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=env) as process:
        assert process.stdout.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=20)
    assert out.splitlines()[-1] == "interrupted True stopped: interrupted"
    assert process.returncode == 0


def test_it_works_inside_a_running_event_loop():
    """A notebook has a loop already; the sync call works there."""

    async def cell():
        return assess(many(2), judge=AsyncJudge())

    assert asyncio.run(cell()) == assess(many(2), judge=Judge())


def test_the_async_call_uses_the_callers_loop():
    """`assess_async` gives the same evidence, in the caller's thread."""
    threads = set()

    def function(turn):
        threads.add(threading.get_ident())
        return Score(1.0, "right")

    found = asyncio.run(assess_async(many(2), judge=AsyncJudge(function)))
    assert found == assess(many(2), judge=Judge())
    assert threads == {threading.get_ident()}


def test_cancelling_the_async_call_cancels_the_run():
    """Nothing goes on judging after a cancellation."""
    judge = AsyncJudge()

    async def main():
        with anyio.move_on_after(0.02) as scope:
            await assess_async(many(500), judge=judge, concurrency=2)
        before = judge.calls
        await anyio.sleep(0.02)
        return scope.cancelled_caught, judge.calls - before

    assert anyio.run(main) == (True, 0)


def test_context_variables_reach_the_graders():
    """Tracing and settings kept in context variables are those of the caller."""
    variable = contextvars.ContextVar("variable", default="lost")
    variable.set("kept")
    found = assess(many(1), judge=Judge(lambda turn: Score(1.0, variable.get())))
    assert {r.answer_reason for r in found} == {"kept"}


def test_the_arguments_are_not_changed():
    """Conversations and metrics are left as they came."""
    convs, metrics = many(2), [Judge(name="m")]
    copies = list(convs), list(metrics)
    assess(convs, judge=Judge(), metrics=metrics)
    assert (convs, metrics) == copies
