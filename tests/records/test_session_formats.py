"""Sessions of coding agents, trajectories and run folders: files that the tools wrote, read call by call."""

import json
import shutil
import warnings
from pathlib import Path

import pytest

import agentic_bayes as ab
from agentic_bayes.errors import DoubtfulRecords, RecordsError

FILES = Path(__file__).parent / "files"
CLAUDE = FILES / "claude_code"
SESSION = next(CLAUDE.glob("*.jsonl"))
STREAM = FILES / "claude_code_stream" / "stream.jsonl"
CODEX = FILES / "codex"
JOB = FILES / "harbor" / "job"


def calls(turn):
    """What was called with what, and what came back."""
    return [(call.tool_name, call.parameters, call.result) for call in turn.agentic.tools_used]


def names(turn):
    return [call.tool_name for call in turn.agentic.tools_used]


@pytest.fixture
def read(tmp_path):
    """The only conversation in these lines."""

    def run(lines, name="session.jsonl", **options):
        path = tmp_path / name
        path.write_text("\n".join(json.dumps(line) for line in lines), "utf-8")
        (found,) = ab.read_conversations(path, **options)
        return found

    return run


class TestClaudeCode:
    """Sessions of Claude Code."""

    def test_a_session_is_read_call_by_call(self):
        """Parallel calls whose results came in another order, a sub-agent in its own file, a failure, a compaction."""
        (found,) = ab.read_conversations(CLAUDE)
        assert found.assistant_id == "claude-opus-5-5"
        first, second, third = found.conversation
        assert first.query == "How warm is it in Oslo and Rome?"
        assert first.assistant == "It is 4 C in Oslo and 20 C in Rome."
        oslo, rome, agent, add, failed = calls(first)
        assert oslo == ("Bash", {"command": "cat weather/oslo.txt", "description": "Oslo"}, "4 C")
        assert rome == ("Read", {"file_path": "/project/weather/rome.txt"}, "1\t20 C\n2\t")
        assert agent[0] == "Agent"
        assert add == ("Bash", {"command": "echo 24", "description": "Add"}, "24")
        assert failed[2]["status"] == "error"
        assert first.metadata["reasoning"] == ["Two files hold it."]
        assert first.metadata["tokens"] == {"input": 60, "output": 30}
        assert (second.query, second.assistant) == ("And in Bergen?", "I do not know.")
        assert (third.query, third.assistant) == ("And in Bergen now?", "I do not know.")
        asked = "SUBAGENT: what is 4 + 20?"
        assert found.metadata["sub_agents"] == [{"asked": asked, "answered": "The sum is 24.", "calls": 1}]
        assert found.metadata["available_tools"][0]["name"] == "Agent"
        assert found.metadata["compacted"] == 1
        assert "IMPORTANT" in found.context

    def test_the_folder_a_session_ran_in_can_be_its_task(self):
        """`fields` looks into the lines of the session."""
        (found,) = ab.read_conversations(SESSION, fields={"task": "cwd", "agent": "version"})
        assert (found.task_id, found.assistant_id) == ("/project", "2.1.332")
        (found,) = ab.read_conversations(CODEX / "rollout.jsonl", fields={"task": "cwd"})
        assert found.task_id == "/project"

    def test_a_sub_agent_whose_file_is_missing_is_said(self, tmp_path):
        """Its calls are not known, which is not the same as none."""
        shutil.copy(SESSION, tmp_path / "alone.jsonl")
        with pytest.warns(DoubtfulRecords, match="a sub-agent's own file is missing, so what it did is unknown"):
            (found,) = ab.read_conversations(tmp_path / "alone.jsonl")
        assert names(found.conversation[0]) == ["Bash", "Read", "Agent", "Bash"]

    def test_files_of_sub_agents_may_lie_next_to_the_session(self, tmp_path):
        """As in older versions; either way they are no sessions of their own."""
        shutil.copy(SESSION, tmp_path)
        shutil.copy(next(CLAUDE.rglob("agent-*.jsonl")), tmp_path)
        assert list(ab.read_conversations(tmp_path)) == list(ab.read_conversations(CLAUDE))

    def test_the_file_of_a_sub_agent_alone_is_a_conversation(self):
        """Its prompt is the question."""
        (found,) = ab.read_conversations(next(CLAUDE.rglob("agent-*.jsonl")))
        (turn,) = found.conversation
        assert (turn.query, turn.assistant, names(turn)) == ("SUBAGENT: what is 4 + 20?", "The sum is 24.", ["Bash"])

    def test_printed_lines_are_read_like_a_session(self):
        """`--output-format stream-json` leaves the prompt out: the query is empty, and that is said."""
        with pytest.warns(DoubtfulRecords, match="does not say what the user asked"):
            (found,) = ab.read_conversations(STREAM)
        (turn,) = found.conversation
        assert (turn.query, turn.assistant) == ("", "It is 4 C in Oslo and 20 C in Rome.")
        assert names(turn) == ["Bash", "Read", "Agent", "Bash", "Bash"]
        assert "Bash" in found.metadata["available_tools"]

    def test_runs_that_are_printed_one_after_the_other_are_turns_with_or_without_their_prompts(self, read):
        """`--replay-user-messages` repeats the prompts, which name no parents and so were not taken back."""

        def printed(role, text):
            message = {"role": role, "content": [{"type": "text", "text": text}]}
            return {"type": role, "uuid": text, "session_id": "s", "parent_tool_use_id": None, "message": message}

        start = {"type": "system", "subtype": "init", "session_id": "s", "tools": [], "model": "m"}
        end = {"type": "result", "subtype": "success", "is_error": False, "session_id": "s"}
        runs = [("Oslo?", "4 C"), ("Rome?", "20 C")]
        lines = [[start, printed("user", asked), printed("assistant", said), end] for asked, said in runs]
        found = read([line for run in lines for line in run])
        assert [(turn.query, turn.assistant) for turn in found.conversation] == runs
        with pytest.warns(DoubtfulRecords, match="does not say what the user asked"):
            found = read([line for first, _, *rest in lines for line in (first, *rest)])
        assert [(turn.query, turn.assistant) for turn in found.conversation] == [("", "4 C"), ("", "20 C")]

    @staticmethod
    def line(uuid, parent, role, content, **more):
        """A line of a session file."""
        message = {"role": role, "content": content, "model": "m"}
        return {"type": role, "uuid": uuid, "parentUuid": parent, "sessionId": "s", "message": message, **more}

    def test_what_the_user_took_back_is_left_out(self, read):
        """Two prompts after the same answer: the first of them was edited."""
        line = self.line
        found = read(
            [
                line("1", None, "user", "hi"),
                line("2", "1", "assistant", [{"type": "text", "text": "hello"}]),
                line("3", "2", "user", "wrong"),
                line("4", "3", "assistant", [{"type": "tool_use", "id": "t", "name": "rm", "input": {}}]),
                line("5", "4", "user", [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}]),
                line("6", "2", "user", "right"),
                line("7", "6", "assistant", [{"type": "text", "text": "yes"}]),
            ]
        )
        assert [(turn.query, turn.assistant, names(turn)) for turn in found.conversation] == [
            ("hi", "hello", []),
            ("right", "yes", []),
        ]
        assert found.metadata["lines_taken_back"] == 3

    def test_reminders_in_the_user_s_name_are_no_question_but_tags_of_the_user_are(self, read):
        """A reminder may stand in a message of its own, in a block, or in front of what the user said."""
        line, note = self.line, "<system-reminder>Be brief.</system-reminder>"
        found = read(
            [
                line("1", None, "user", f"{note}\n<task>first</task>"),
                line("2", "1", "assistant", [{"type": "text", "text": "one"}]),
                line("3", "2", "user", [{"type": "text", "text": note}, {"type": "text", "text": "second"}]),
                line("4", "3", "user", note),
                line("5", "4", "assistant", [{"type": "text", "text": "two"}]),
            ]
        )
        said = [(turn.query, turn.assistant) for turn in found.conversation]
        assert said == [("<task>first</task>", "one"), ("second", "two")]

    def test_what_the_harness_says_is_no_question_and_an_error_on_the_way_does_not_end_a_turn(self, read):
        """The caveat of older versions, the open file of an editor, another agent; the agent goes on after an error."""
        line, done = self.line, [{"type": "text", "text": "done"}]
        editor = [{"type": "text", "text": text} for text in ("<ide_opened_file>x.py</ide_opened_file>", "Fix x")]
        found = read(
            [
                line(
                    "1",
                    None,
                    "user",
                    "Caveat: The messages below were generated by the user while running local commands …",
                ),
                line("2", "1", "user", editor),
                line("3", "2", "assistant", [{"type": "text", "text": "API Error: 529"}], isApiErrorMessage=True),
                line("4", "3", "assistant", done),
                line("5", "4", "user", "<teammate-message teammate_id='b'>I am ready</teammate-message>"),
            ]
        )
        (turn,) = found.conversation
        assert (turn.query, turn.assistant, turn.error) == ("Fix x", "done", None)

    def test_sub_agents_in_the_same_file_belong_to_the_call_with_their_prompt(self, read):
        """As older versions wrote them."""
        line = self.line
        call = {"type": "tool_use", "id": "t", "name": "Task", "input": {"prompt": "add"}}
        inner = {"type": "tool_use", "id": "u", "name": "Bash", "input": {"command": "echo 3"}}
        found = read(
            [
                line("1", None, "user", "sum?"),
                line("2", "1", "assistant", [call]),
                line("3", None, "user", "add", isSidechain=True),
                line("4", "3", "assistant", [inner], isSidechain=True),
                line("5", "4", "user", [{"type": "tool_result", "tool_use_id": "u", "content": "3"}], isSidechain=True),
                line("6", "5", "assistant", [{"type": "text", "text": "It is 3."}], isSidechain=True),
                line("7", "2", "user", [{"type": "tool_result", "tool_use_id": "t", "content": "It is 3."}]),
                line("8", "7", "assistant", [{"type": "text", "text": "3"}]),
            ]
        )
        (turn,) = found.conversation
        assert [(name, result) for name, _, result in calls(turn)] == [("Task", "It is 3."), ("Bash", "3")]
        assert turn.assistant == "3"

    def test_a_session_that_ends_with_a_call_or_an_error_has_no_answer(self, read):
        """It says why."""
        line = self.line
        call = [{"type": "text", "text": "I look."}, {"type": "tool_use", "id": "t", "name": "Bash", "input": {}}]
        waiting = read([line("1", None, "user", "hi"), line("2", "1", "assistant", call)])
        assert waiting.conversation[0].assistant is None
        assert "a call of 'Bash' had no result yet" in waiting.error_at(0)
        failed = [{"type": "text", "text": "API Error: 529 overloaded"}]
        broken = read([line("1", None, "user", "hi"), line("2", "1", "assistant", failed, isApiErrorMessage=True)])
        assert broken.error_at(0) == "infrastructure: API Error: 529 overloaded"

    def test_a_line_of_an_unknown_kind_that_may_be_a_call_is_named(self, read):
        """Other lines are counted."""
        line = self.line
        lines = [
            line("1", None, "user", "hi"),
            {"type": "brand-new", "sessionId": "s", "result": 1},
            {"type": "harmless", "sessionId": "s", "seconds": 1},
            line("2", "1", "assistant", [{"type": "text", "text": "yes"}]),
        ]
        with pytest.warns(DoubtfulRecords, match="kind 'brand-new' is not known and was not read"):
            found = read(lines)
        assert found.metadata["other_lines"] == {"harmless": 1}

    def test_a_broken_line_refuses_the_session(self, tmp_path):
        """Half a session is not a session."""
        path = tmp_path / "s.jsonl"
        path.write_bytes(SESSION.read_bytes()[:-200])
        with pytest.raises(RecordsError, match=r"line 68: is incomplete"):
            ab.read_conversations(path)


class TestCodex:
    """Sessions of Codex."""

    def test_a_rollout_is_read_call_by_call(self):
        """What Codex says in the user's name is no question, and no event repeats a call."""
        (found,) = ab.read_conversations(CODEX / "rollout.jsonl")
        assert found.assistant_id == "gpt-5.1-codex"
        first, second = found.conversation
        assert first.query == "How warm is it in Oslo and Rome?"
        assert [(name, asked) for name, asked, _ in calls(first)] == [
            ("exec_command", {"cmd": f"cat weather/{city}.txt"}) for city in ("oslo", "rome", "nowhere")
        ]
        assert [result.splitlines()[-1] for _, _, result in calls(first)] == [
            "4 C",
            "20 C",
            "cat: weather/nowhere.txt: No such file or directory",
        ]
        assert first.assistant == "It is 4 C in Oslo and 20 C in Rome."
        assert first.metadata["reasoning"] == ["Two files hold it."]
        assert (second.query, second.assistant) == ("And in Bergen?", "I do not know.")

    def test_the_lines_of_exec_are_read(self):
        """They do not hold the prompt."""
        with pytest.warns(DoubtfulRecords, match="does not say what the user asked"):
            (found,) = ab.read_conversations(CODEX / "exec.jsonl")
        (turn,) = found.conversation
        assert names(turn) == ["command_execution"] * 3
        assert turn.agentic.tools_used[0].result == {"aggregated_output": "4 C\n", "exit_code": 0}
        assert turn.assistant == "It is 4 C in Oslo and 20 C in Rome."

    def test_an_error_after_which_codex_went_on_is_no_error_of_the_turn(self, read):
        """`codex exec` prints each attempt to connect again, even after the answer."""
        again = {"type": "error", "message": "Reconnecting... 1/5"}
        item = {"type": "item.completed", "item": {"id": "1", "type": "agent_message", "text": "Done."}}
        start, end = {"type": "turn.started"}, {"type": "turn.completed", "usage": {}}
        failed = {"type": "turn.failed", "error": {"message": "gave up"}}
        lines = [{"type": "thread.started", "thread_id": "t"}, start, again, item, again, end, start, again, failed]
        with pytest.warns(DoubtfulRecords, match="does not say what the user asked"):
            found = read(lines)
        assert [(turn.assistant, turn.error) for turn in found.conversation] == [("Done.", None), (None, "gave up")]

    def test_the_session_of_a_sub_agent_is_said(self, read):
        """It has a file of its own, which nothing in the other session names."""
        meta = {"id": "x", "source": {"subagent": {"thread_spawn": {"parent_thread_id": "y", "depth": 1}}}}
        content = [{"type": "input_text", "text": "go"}]
        lines = [
            {"timestamp": "t", "type": "session_meta", "payload": meta},
            {
                "timestamp": "t",
                "type": "response_item",
                "payload": {"type": "message", "role": "user", "content": content},
            },
        ]
        with pytest.warns(DoubtfulRecords, match="is the session of a sub-agent"):
            read(lines)

    def test_calls_of_every_kind_find_their_results(self, read):
        """Functions, custom tools with one text as their input, and shell calls; an aborted turn says so."""

        def item(**payload):
            return {"timestamp": "t", "type": "response_item", "payload": payload}

        def said(role, text):
            return item(type="message", role=role, content=[{"type": "input_text", "text": text}])

        patch = {"type": "custom_tool_call", "call_id": "b", "name": "apply_patch", "input": "*** Begin"}
        shell = {"type": "local_shell_call", "call_id": "c", "status": "completed"}
        found = read(
            [
                {"timestamp": "t", "type": "session_meta", "payload": {"id": "x", "cwd": "/p"}},
                said("user", "<environment_context>…</environment_context>"),
                said("user", "<task>go</task>"),
                item(type="function_call", call_id="a", name="f", arguments='{"x": 1}'),
                item(**patch),
                item(**shell, action={"type": "exec", "command": ["ls"]}),
                item(type="function_call_output", call_id="c", output={"content": "no", "success": False}),
                item(type="custom_tool_call_output", call_id="b", output="done"),
                item(type="function_call_output", call_id="a", output="1"),
                {"timestamp": "t", "type": "event_msg", "payload": {"type": "turn_aborted", "reason": "interrupted"}},
            ]
        )
        (turn,) = found.conversation
        assert turn.query == "<task>go</task>"
        assert calls(turn) == [
            ("f", {"x": 1}, "1"),
            ("apply_patch", {"input": "*** Begin"}, "done"),
            ("local_shell", {"command": ["ls"]}, {"status": "error", "content": "no"}),
        ]
        assert turn.assistant is None
        assert found.error_at(0) == "the turn was aborted: interrupted"


class TestTrajectories:
    """ATIF, SWE-agent and mini-SWE-agent, smolagents' memory."""

    def test_an_atif_trajectory_is_read_with_its_sub_agents(self):
        """The call that ends the run needs no result; the sub-agent's call follows the one that started it."""
        (found,) = ab.read_conversations(JOB / "rome__i7j8k9l" / "agent" / "trajectory.json")
        (turn,) = found.conversation
        assert found.assistant_id == "terminus-2 (gpt-5)"
        assert [(call.tool_name, call.result) for call in turn.agentic.tools_used] == [
            ("bash_command", "20 C"),
            ("delegate", "done"),
            ("add", "24"),
            ("mark_task_complete", None),
        ]
        assert (turn.query, turn.assistant) == ("How warm is it in Rome?", "It is 20 C.")
        assert turn.metadata["reasoning"] == ["hm"]
        assert found.metadata["sub_agents"] == [{"asked": "Add 4 and 20.", "answered": "24", "calls": 1}]

    def test_a_continuation_is_read_with_its_trajectory(self, tmp_path):
        """The steps that it repeats for context count once; without it, that is said."""

        def step(number, source, **more):
            return {"step_id": number, "source": source, "message": "", **more}

        call = {"tool_call_id": "c", "function_name": "f", "arguments": {}}
        begin = [step(1, "user", message="go"), step(2, "agent", tool_calls=[call])]
        end = [{**one, "is_copied_context": True} for one in begin] + [step(3, "agent", message="done")]
        whole = {"schema_version": "ATIF-v1.5", "session_id": "s", "agent": {"name": "a", "version": "1"}}
        first = {**whole, "steps": begin, "continued_trajectory_ref": "trajectory.cont-1.json"}
        (tmp_path / "trajectory.json").write_text(json.dumps(first), "utf-8")
        with pytest.warns(DoubtfulRecords, match="goes on in 'trajectory.cont-1.json', which is not there"):
            list(ab.read_conversations(tmp_path))
        (tmp_path / "trajectory.cont-1.json").write_text(json.dumps({**whole, "steps": end}), "utf-8")
        (found,) = ab.read_conversations(tmp_path)
        assert (names(found.conversation[0]), found.conversation[0].assistant) == (["f"], "done")

    @pytest.mark.parametrize("kind", ["text", "toolcall"])
    def test_mini_swe_agent_s_observations_are_results_not_questions(self, kind):
        """Also where they are the user's messages."""
        (found,) = ab.read_conversations(FILES / "mini_swe_agent" / f"{kind}.traj.json")
        (turn,) = found.conversation
        assert turn.query == "Task: How warm is it in Oslo?"
        assert [one["command"] for _, one, _ in calls(turn)][:3] == [
            f"cat weather/{city}.txt" for city in ("oslo", "rome", "nowhere")
        ]
        assert ["4 C" in calls(turn)[0][2], "20 C" in calls(turn)[1][2], "No such file" in calls(turn)[2][2]] == [
            True
        ] * 3
        assert turn.assistant == "It is 4 C.\n"
        assert found.task_id == kind

    def test_a_trajectory_of_swe_agent_is_found_by_its_ending(self):
        """The task is the file's name, the answer what was submitted, and demonstrations are left out."""
        (found,) = ab.read_conversations(FILES / "swe_agent")
        (turn,) = found.conversation
        assert (found.task_id, found.assistant_id) == ("astropy__astropy-1", "swe-agent (claude-sonnet)")
        assert turn.query == "How warm is it in Rome?"
        assert calls(turn)[:2] == [
            ("find_file", {"file_name": "rome.txt"}, "weather/rome.txt"),
            ("bash", {"command": "cat weather/rome.txt"}, "20 C"),
        ]
        assert turn.assistant.endswith("+20 C\n")
        assert turn.metadata["reasoning"] == ["I look for it.", "Now I read it.", "Done."]

    def test_what_ends_a_run_of_swe_agent_is_no_call_of_the_agent_and_a_recovered_step_is_no_error(self, read):
        """SWE-agent writes the step itself that ends a run at its limit; a step of smolagents may fail in parsing."""
        step = {"action": "ls\n", "observation": "a", "thought": "look"}
        end = {"action": "exit_cost", "observation": "", "thought": "Exit due to cost limit"}
        asked = {"role": "user", "content": "Fix it"}
        info = {"exit_status": "submitted (exit_cost)", "submission": "diff"}
        found = read([{"trajectory": [step, end], "history": [asked], "info": info}], "x.traj")
        (turn,) = found.conversation
        assert (turn.assistant, names(turn)) == ("diff", ["ls"])
        steps = [
            {"task": "How warm?", "task_images": None},
            {"step_number": 1, "model_output": "?", "action_output": None, "error": {"message": "no code"}},
            {"step_number": 2, "model_output": "", "action_output": "4 C", "is_final_answer": True},
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            (turn,) = read(steps).conversation
        assert (turn.assistant, turn.error, names(turn)) == ("4 C", None, [])
        # smolagents 1.9: other names, and only the code says that this is the answer
        code = {"name": "python_interpreter", "arguments": "final_answer('4 C')"}
        last = {"step": 2, "model_output": "", "action_output": "4 C", "observations": "4 C"}
        steps = [steps[0], {**last, "tool_calls": [{"id": "c", "type": "function", "function": code}]}]
        (turn,) = read(steps).conversation
        assert (turn.assistant, names(turn)) == ("4 C", ["python_interpreter"])

    def test_a_result_of_atif_that_names_none_of_several_calls_is_not_lost(self, read):
        """Terminus writes one for all commands of a step."""
        made = [{"tool_call_id": c, "function_name": "bash", "arguments": {"keys": c}} for c in ("ls", "pwd")]
        steps = [
            {"step_id": 1, "source": "user", "message": "?"},
            {"step_id": 2, "source": "agent", "message": "", "tool_calls": made}
            | {"observation": {"results": [{"source_call_id": None, "content": "a\n/app"}]}},
            {"step_id": 3, "source": "agent", "message": "Done."},
        ]
        with pytest.warns(DoubtfulRecords, match="names none of the several calls of its step"):
            found = read([{"schema_version": "ATIF-v1.4", "agent": {"name": "t", "version": "2"}, "steps": steps}])
        assert calls(found.conversation[0]) == [("bash", {"keys": "ls"}, "a\n/app"), ("bash", {"keys": "pwd"}, None)]

    def test_a_run_of_swe_agent_without_a_submission_says_how_it_ended(self, tmp_path):
        """A budget that ran out is the agent's, a broken environment is not."""
        raw = json.loads(next((FILES / "swe_agent").rglob("*.traj")).read_text("utf-8"))
        for status, error in (
            ("exit_cost", "ended without a submission: exit_cost"),
            ("exit_environment_error", "infrastructure: exit_environment_error"),
        ):
            raw["info"] |= {"exit_status": status, "submission": None}
            (tmp_path / "x.traj").write_text(json.dumps(raw), "utf-8")
            (found,) = ab.read_conversations(tmp_path / "x.traj")
            assert (found.conversation[0].assistant, found.error_at(0)) == (None, error)

    @pytest.mark.parametrize("name", ["steps", "run_result"])
    def test_steps_of_smolagents_are_read(self, name):
        """Several calls in a step, one that failed, and the answer of `final_answer`."""
        (found,) = ab.read_conversations(FILES / "smolagents" / f"{name}.json")
        (turn,) = found.conversation
        assert [(asked["city"], result) for _, asked, result in calls(turn)][:2] == [("Oslo", "4 C"), ("Rome", "20 C")]
        assert calls(turn)[2][2]["status"] == "error"
        assert (turn.query, turn.assistant) == ("How warm is it?", "It is 4 C.")
        assert turn.metadata["reasoning"] == ["I look."]

    def test_a_step_of_smolagents_that_failed_without_a_word_keeps_its_call(self, tmp_path):
        """The model's message has the call that the step has not; the kind of the failure is its result."""
        steps = json.loads((FILES / "smolagents" / "steps.json").read_text("utf-8"))
        steps[2]["error"]["message"] = None
        path = tmp_path / "steps.json"
        path.write_text(json.dumps(steps), "utf-8")
        (found,) = ab.read_conversations(path)
        (call,) = (c for c in found.conversation[0].agentic.tools_used if c.parameters == {"city": "Nowhere"})
        assert call.result == {"status": "error", "content": steps[2]["error"]["type"]}

    def test_code_of_smolagents_is_a_call_of_its_interpreter(self):
        """The answer is the value that the last code gave."""
        (found,) = ab.read_conversations(FILES / "smolagents" / "code_steps.json")
        (turn,) = found.conversation
        assert calls(turn)[0][:2] == ("python_interpreter", {"code": "x = weather(city='Oslo')\nprint(x)"})
        assert turn.assistant == "It is 4 C."


class TestRunFolders:
    """Harbor and Terminal-Bench."""

    def test_what_tools_write_next_to_their_logs_does_not_refuse_the_folder(self, tmp_path):
        """Indexes, patches and listings hold no log; a log of that name is read all the same."""
        shutil.copytree(CLAUDE, tmp_path / "projects")
        shutil.copy(CODEX / "rollout.jsonl", tmp_path)
        aside = {
            "projects/sessions-index.json": {"version": 1, "entries": []},
            f"projects/{SESSION.stem}/subagents/agent-1.meta.json": {"agentType": "general-purpose"},
            f"projects/{SESSION.stem}/subagents/workflows/journal.jsonl": {"type": "started", "agentId": "1"},
            "session_index.jsonl": {"id": "1", "thread_name": "x"},
            "swe/preds.json": {"x__1": {"model_patch": "diff"}},
            "inspect/logs.json": {"a.eval": {"status": "success"}},
            "inspect/eval-set.json": {"eval_set_id": "x"},
        }
        for name, content in aside.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(json.dumps(content), "utf-8")
        (tmp_path / "history.jsonl").write_text('{"session_id":"1","ts":1,"text":"hi"}\n', "utf-8")
        assert [one.metadata["format"] for one in ab.read_conversations(tmp_path)] == ["claude-code", "codex"]
        log = {"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}]}
        (tmp_path / "history.jsonl").write_text(json.dumps(log), "utf-8")
        assert len(list(ab.read_conversations(tmp_path))) == 3
        with pytest.raises(RecordsError, match="unknown format: an object with the keys 'eval_set_id'"):
            ab.read_conversations(tmp_path / "inspect" / "eval-set.json")

    @pytest.mark.parametrize("path", [JOB, JOB / "result.json"])
    def test_a_job_of_harbor_is_its_trials(self, path):
        """Agent with model, task, reward; nothing else in the folder is taken for a conversation."""
        with pytest.warns(DoubtfulRecords, match="the agent left no trajectory"):
            found = {c.session_id: c for c in ab.read_conversations(path)}
        assert {name: (c.assistant_id, c.task_id, c.recorded_score) for name, c in found.items()} == {
            "oslo__a1b2c3d": ("claude-code (claude-opus-5-5)", "weather/oslo", 1.0),
            "oslo__e4f5g6h": ("codex (gpt-5.1-codex)", "weather/oslo", 0.0),
            "rome__i7j8k9l": ("terminus-2 (gpt-5)", "weather/rome", 0.0),
            "rome__m1n2o3p": ("terminus-2 (gpt-5)", "weather/rome", None),
        }
        assert names(found["oslo__a1b2c3d"].conversation[0]) == ["Bash", "Read", "Agent", "Bash", "Bash"]
        assert len(found["oslo__e4f5g6h"].conversation) == 2
        assert found["rome__i7j8k9l"].metadata["recorded_metrics"] == {"style": 0.5}
        assert found["rome__i7j8k9l"].metadata["exception"].startswith("AgentTimeoutError")
        crashed = found["rome__m1n2o3p"]
        assert crashed.error_at(0) == "infrastructure: ApiRateLimitError: 429"
        assert crashed.conversation[0].agentic is None

    def test_a_reward_is_chosen_by_name(self):
        """`reward` counts unless another is asked for; a trial without it is unscored."""
        path = JOB / "rome__i7j8k9l" / "result.json"
        (found,) = ab.read_conversations(path, scorer="style")
        assert (found.recorded_score, found.metadata["recorded_metrics"]) == (0.5, {"reward": 0.0})
        (other,) = ab.read_conversations(JOB / "oslo__e4f5g6h" / "result.json", scorer="style")
        assert other.recorded_score is None
        assert "style" in other.metadata["not_scored"]

    def test_a_trial_that_ran_out_of_time_and_was_judged_counts(self, tmp_path):
        """It has no answer, but its reward says that it failed."""
        shutil.copytree(JOB / "rome__i7j8k9l", tmp_path / "trial")
        path = tmp_path / "trial" / "agent" / "trajectory.json"
        log = json.loads(path.read_text("utf-8"))
        del log["steps"][2:], log["steps"][1]["observation"]
        path.write_text(json.dumps(log), "utf-8")
        (found,) = ab.read_conversations(tmp_path)
        assert (found.recorded_score, found.error_at(0), found.conversation[0].assistant) == (0, None, "")
        assert "had no result yet" in found.metadata["ended"]

    def test_a_run_of_terminal_bench_is_its_trials(self):
        """Each once, although the folder holds results of the run and of a trial; a crash is no failure."""
        found = list(ab.read_conversations(FILES / "terminal_bench" / "run"))
        assert {c.assistant_id for c in found} == {"terminus (gpt-5)"}
        assert [(c.task_id, c.trial, c.recorded_score, c.error_at(0)) for c in found] == [
            ("oslo", 0, 1, None),
            ("oslo", 1, 0, None),
            ("rome", 0, None, "infrastructure: unknown_agent_error"),
            ("rome", 1, None, "infrastructure: test_timeout"),
        ]
        assert [c.conversation[0].query for c in found][:1] == ["How warm is it in oslo?"]
        assert all(c.conversation[0].agentic is None for c in found)


@pytest.mark.parametrize("name", ["codex/rollout.jsonl", "claude_code_stream/stream.jsonl", "chat.jsonl"])
def test_a_session_whose_last_line_is_cut_off_is_read_without_it_on_request(tmp_path, name):
    """Wherever the agent was killed while it wrote: the line is named, and the last turn is an error, not an answer."""
    messages = [{"role": role, "content": f"{role} é"} for role in ("user", "assistant", "user", "assistant")]
    chat = "\n".join(json.dumps(message, ensure_ascii=False) for message in messages).encode()
    data = chat if name == "chat.jsonl" else (FILES / name).read_bytes().rstrip()
    begin = data.rindex(b"\n") + 1
    path, line = tmp_path / "log.jsonl", data.count(b"\n") + 1
    for end in range(begin + 1, len(data), max(1, (len(data) - begin) // 9)):
        path.write_bytes(data[:end])
        with pytest.raises(RecordsError, match=rf"line {line}: [^\n]+\n.*--skip-bad"):
            ab.read_conversations(path)
        with pytest.warns(DoubtfulRecords) as said:
            found = ab.read_conversations(path, on_error="skip")
        assert f"1 of 2 records could not be read and were left out: {path}, line {line}: " in str(said[-1].message)
        (conversation,) = found
        assert conversation.conversation[-1].error == f"the log breaks off in line {line}"
        assert all(turn.error is None for turn in conversation.conversation[:-1])
