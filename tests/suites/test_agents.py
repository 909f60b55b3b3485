"""Agents are checked before anything is asked, reply in every form they may, and break down with one clear line."""

import functools
import importlib.util
import json
import os
import re
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentic_bayes.errors import AgentError, DoubtfulRecords, InvalidArgument, MissingPackage, SuiteError
from agentic_bayes.suites.agents.registry import make_agent
from agentic_bayes.suites.declaration import AgentConfig
from agentic_bayes.suites.trial import Agent, AgentReply, SuiteTask, TrialAttempt
from tests.openai_server import ChatServer
from tests.openai_server import Reply as Completion


def declared(kind: str, **config: Any) -> AgentConfig:
    """The declaration of an agent."""
    return AgentConfig.model_validate({"type": kind, "config": config})


def one(*messages: str, trial: int = 0, **fields: Any) -> TrialAttempt:
    """A trial of a task."""
    return TrialAttempt(SuiteTask("capital", messages or ("Hello?",), **fields), trial, 17)


def ask(agent: Agent, attempt: TrialAttempt | None = None, *, within: float = 20) -> AgentReply:
    """What the agent replies; its connections are closed."""

    async def run() -> AgentReply:
        try:
            with anyio.fail_after(within):
                return await agent.attempt(attempt or one())
        finally:
            if hasattr(agent, "close"):
                await agent.close()

    return anyio.run(run)


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Writes modules into the suite's folder; what was loaded from there is unloaded after the test."""
    before = set(sys.modules)

    def write_modules(folder: Path = tmp_path, **sources: str) -> Path:
        folder.mkdir(exist_ok=True)
        for name, source in sources.items():
            (folder / f"{name}.py").write_text(textwrap.dedent(source), encoding="utf-8")
        return folder

    yield write_modules
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def python(write: Callable[..., Path], source: str, name: str = "answer") -> Agent:
    """An agent that is a function of a new module."""
    return make_agent(declared("python", function=f"my_agent:{name}"), folder=write(my_agent=source))


# Declarations


@pytest.mark.parametrize(
    ("kind", "config", "problems"),
    [
        ("python", {}, ["agent.config.function: is missing and must be given"]),
        ("python", {"function": "agent.py"}, ['function: must be "module:name", for example agent:answer']),
        ("python", {"function": 3, "funktion": 1}, ["function: must be text, got 3", "did you mean 'function'?"]),
        ("openai", {"modle": "m"}, ["model: is missing", "unknown key 'modle': did you mean 'model'?"]),
        ("openai", {"model": " "}, ["model: must not be blank"]),
        ("openai", {"model": "m", "temperature": "hot"}, ["temperature: must be a number, got 'hot'"]),
        ("openai", {"model": "m", "max_tokens": 0}, ["max_tokens: "]),
        ("openai", {"model": "m", "options": {"api_key": "k"}}, ["options.api_key: must not be written here"]),
        ("openai", {"model": "m", "options": {"temperature": 1}}, ["must be given outside options"]),
        ("openai", {"model": "m", "options": {"max_retries": 1}}, ["must be given in the suite's execution section"]),
        ("openai", {"model": "m", "tool_choice": "auto"}, ["tool_choice: needs tools"]),
        ("langchain", {"object": "a:b", "input": "dict"}, ["input: "]),
        ("http", {"url": "localhost:80"}, ["url: must begin with http:// or https://"]),
        ("http", {"url": "http://127.0.0.1:99999/"}, ["url: must have a port from 1 to 65535"]),
        ("http", {"url": "http://h", "method": "SEND"}, ["method: "]),
        (
            "http",
            {"url": "http://h/{{promt}}", "body": ["{{params}}", {"a": "x {{seeds.x}}"}], "answer": "$.a["},
            [
                "url: holds the unknown placeholder '{{promt}}': did you mean 'prompt'?",
                "body: ",
                "answer: must be a JSONPath",
            ],
        ),
        (
            "http",
            {"url": "http://h", "usage": {"input": "$.a"}},
            ["usage.input: unknown key 'input': valid: 'input_tokens'"],
        ),
        ("http", {"url": "http://h", "headers": {"a b": "c", "d": "e\nf"}}, ["'a b' must be a header", "'d' must be"]),
        ("command", {}, ["command: is missing"]),
        ("command", {"command": ""}, ["command: must not be blank"]),
        ("command", {"command": []}, ["command: must be text for the shell, or a list"]),
        ("command", {"command": ["no-such-program-here"]}, ["there is no program 'no-such-program-here' in"]),
        ("command", {"command": "x", "env": {"A=B": "c"}}, ["env: must be names and texts that the system allows"]),
        ("http", {"url": "http://h", "answer": "$[?search(@, '(a+)+$')]"}, ["answer: must be a JSONPath"]),
        ("command", {"command": "x", "env": {"A": ["b"]}, "max_output": 0}, ["env.A: must be text", "max_output: "]),
    ],
)
def test_everything_wrong_with_a_declaration_is_said_before_anything_is_asked(tmp_path, kind, config, problems):
    """Unknown keys with the nearest valid one, types, paths and placeholders: all of it at once."""
    with pytest.raises(SuiteError, match=r"agent\.config") as caught:
        make_agent(declared(kind, **config), folder=tmp_path, environment={"OPENAI_API_KEY": "k", "PATH": os.defpath})
    assert all(problem in str(caught.value) for problem in problems), str(caught.value)


# Functions


def test_a_function_is_given_those_keywords_that_it_takes(write):
    """Only what the signature names; all of it with **kw; nothing but the prompt without."""
    source = """
        import json
        def some(prompt, *, seed, params): return json.dumps([prompt, seed, params])
        def every(prompt, **kw): return json.dumps([prompt, sorted(kw)])
        def none(prompt): return prompt.upper()
        async def later(prompt, trial=None): return f"{prompt} {trial}"
        class Bot:
            async def __call__(self, prompt, task_id): return task_id
        bot = Bot()
    """
    attempt = one("Hi", trial=3, params={"x": 1})

    def given(name: str) -> str:
        return ask(python(write, source, name), attempt).text

    assert json.loads(given("some")) == ["Hi", 17, {"x": 1}]
    assert json.loads(given("every")) == ["Hi", ["messages", "params", "seed", "task_id", "trial"]]
    assert (given("none"), given("later"), given("bot")) == ("HI", "Hi 3", "capital")


def test_a_function_sees_the_dialogue_and_cannot_change_it_for_others(write):
    """Once per message, with what was said before; changes to what it was given stay with it."""
    source = """
        def answer(prompt, messages, params):
            said = " ".join(m["role"][0] + ":" + m["content"] for m in messages)
            messages.clear()
            params["inner"].append(1)
            return f"[{said}]{len(params['inner'])}"
    """
    attempt = one("a", "b", system="be brief", params={"inner": []})
    reply = ask(python(write, source), attempt)
    assert reply.answers == ("[s:be brief u:a]1", "[s:be brief u:a a:[s:be brief u:a]1 u:b]1")
    assert attempt.task.params == {"inner": []}
    assert reply.tool_calls == (None, None)
    assert reply.input_tokens is None


def test_calls_are_read_under_all_their_names(write):
    """Our names, OpenAI's and LangChain's; arguments as JSON text; results where there are some; steps are order."""
    source = """
        def answer(prompt):
            return {"answer": "ok", "usage": {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12},
                "tool_calls": [
                {"tool_name": "a", "parameters": {"x": 1}, "result": None},
                {"id": "1", "type": "function", "function": {"name": "b", "arguments": '{"y": 2}'}},
                {"name": "c", "args": {}, "id": "2", "type": "tool_call"},
                {"name": "d", "arguments": '{"cut'}]}
        def stepped(prompt):
            return {"tool_calls": [{"name": "second", "step": 2}, {"name": "first", "step": 1}]}
    """
    reply = ask(python(write, source))
    assert reply.tool_calls[0] == [
        {"tool_name": "a", "parameters": {"x": 1}, "result": None},
        {"tool_name": "b", "parameters": {"y": 2}},
        {"tool_name": "c", "parameters": {}},
        {"tool_name": "d", "parameters": {"(not JSON)": '{"cut'}},
    ]
    assert (reply.input_tokens, reply.output_tokens) == (5, 7)
    stepped = ask(python(write, source, "stepped"))
    assert [call["tool_name"] for call in stepped.tool_calls[0]] == ["first", "second"]
    assert stepped.text == ""


def test_messages_in_the_form_of_openai_give_answer_calls_and_results(write):
    """The answer is what was said after the last call; the user's message may be among them or not."""
    source = """
        CALL = {"role": "assistant", "content": None, "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}]}
        def answer(prompt):
            return {"messages": [CALL, {"role": "tool", "tool_call_id": "1", "content": "3"},
                                 {"role": "assistant", "content": "three"}]}
        def whole(prompt):
            return {"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"},
                                 {"role": "user", "content": prompt}, {"role": "assistant", "content": "z"}]}
        def only_calls(prompt): return {"messages": [CALL]}
        def nothing(prompt): return {"messages": []}
        def broken(prompt): return {"messages": [{"role": "assistant"}]}
    """
    reply = ask(python(write, source))
    assert reply.text == "three"
    assert reply.tool_calls == ([{"tool_name": "add", "parameters": {"a": 1}, "result": "3"}],)
    assert ask(python(write, source, "whole")) == AgentReply(("z",), ([],))
    assert ask(python(write, source, "only_calls")).text == ""
    with pytest.raises(AgentError, match="messages contain no answer"):
        ask(python(write, source, "nothing"))
    with pytest.raises(AgentError, match=r"cannot be read: messages\[1\]\.content: must be given"):
        ask(python(write, source, "broken"))


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        ("None", r"must return text or an object with answer, .* got null \(NoneType\)"),
        ("42", r"got 42 \(int\)"),
        ("iter('ab')", r"\(str_ascii_iterator|\(str_iterator"),
        ("{'anwser': 'x'}", "unknown key 'anwser': did you mean 'answer'"),
        ("{}", "answer must be text, got nothing"),
        ("{'answer': None}", "answer must be text, got null"),
        ("{'answer': 'x', 'tool_calls': 'f'}", "tool_calls must be a list, got 'f'"),
        ("{'answer': 'x', 'tool_calls': [{}]}", r"tool_calls\[0\]: tool_name: is missing"),
        ("{'answer': 'x', 'tool_calls': [{'name': 'f', 'argument': {}}]}", "unknown key 'argument'"),
        ("{'answer': 'x', 'tool_calls': [{'name': 'f', 'args': {}, 'input': {}}]}", "gives parameters twice"),
        ("{'answer': 'x', 'tool_calls': [{'name': 'f', 'args': {'x': float('nan')}}]}", "finite number"),
        ("{'answer': 'x', 'usage': {'input_tokens': -1}}", "whole numbers ≥ 0, got -1"),
        ("{'answer': 'x', 'usage': {'input_tokens': -(10**5000)}}", "whole numbers ≥ 0, got "),
        ("{'answer': 'x', 'usage': {'input_tokens': 2**53 + 1}}", r"whole numbers ≤ 2\*\*53, got one of 54 bits"),
        ("{'answer': 'x', 'usage': {'output_tokens': 10**5000}}", r"whole numbers ≤ 2\*\*53, got one of 16610 bits"),
        ("{'answer': 'x', 'usage': {'tokens': 1}}", "must hold input_tokens and output_tokens"),
        ("{'messages': [{1, 2}]}", "must be JSON values"),
    ],
)
def test_what_is_no_reply_is_an_error_that_names_what_came(write, returned, message):
    """Never an empty answer in place of what could not be read."""
    with pytest.raises(AgentError, match=message):
        ask(python(write, f"def answer(prompt):\n    return {returned}\n"))


@pytest.mark.parametrize("reply", [r"'ok \ud83d'", r"{'answer': 'ok \ud83d', 'tool_calls': []}"])
def test_half_a_surrogate_pair_in_a_reply_is_replaced_counted_and_said(write, reply):
    """No file can hold it; the trial is not lost, and not run again at every resume."""
    with pytest.warns(DoubtfulRecords, match=r"1 characters .* in an agent's reply were replaced"):
        found = ask(python(write, f"def answer(prompt):\n    return {reply}\n"))
    assert found.answers == ("ok \ufffd",)


def test_a_function_that_raises_breaks_down_as_it_does(write):
    """Its own exception comes through; leaving the program or cancelling itself ends the trial alone."""
    source = """
        import asyncio, sys
        def answer(prompt): raise LookupError("no such city")
        def leaves(prompt): sys.exit(3)
        async def cancels(prompt): raise asyncio.CancelledError
        def stops(prompt): next(iter(()))
        def interrupts(prompt): raise KeyboardInterrupt
        async def exits(prompt): raise GeneratorExit("late")
        async def leaves_later(prompt): sys.exit(4)
        class Odd(BaseException): pass
        async def odd(prompt): raise Odd
    """
    with pytest.raises(LookupError, match="no such city"):
        ask(python(write, source))
    with pytest.raises(AgentError, match=r"ended the program: sys\.exit\(3\)"):
        ask(python(write, source, "leaves"))
    with pytest.raises(AgentError, match="although nothing cancelled it"):
        ask(python(write, source, "cancels"))
    with pytest.raises(RuntimeError, match="StopIteration"):
        ask(python(write, source, "stops"))
    with pytest.raises(AgentError, match=r"ended the program: sys\.exit\(4\)"):
        ask(python(write, source, "leaves_later"))
    for name, raised in (("interrupts", "KeyboardInterrupt()"), ("exits", "GeneratorExit('late')"), ("odd", "Odd()")):
        with pytest.raises(AgentError, match=rf"^the function raised {re.escape(raised)}$"):
            ask(python(write, source, name))


@pytest.mark.parametrize("name", ["answer", "later", "blocks"])
def test_a_function_is_left_behind_when_its_time_is_up(write, name):
    """It does not hold up the run, nor does an asynchronous one that blocks its event loop."""
    source = """
        import asyncio, time
        def answer(prompt): time.sleep(2)
        async def later(prompt): await asyncio.sleep(60)
        async def blocks(prompt): time.sleep(2)
    """
    agent = python(write, source, name)

    async def run() -> float:
        started = time.perf_counter()
        with anyio.move_on_after(0.2) as scope:
            await agent.attempt(one())
        assert scope.cancelled_caught
        return time.perf_counter() - started

    assert anyio.run(run) < 1.5


def test_an_asynchronous_function_is_cancelled_when_its_time_is_up(write, tmp_path):
    """It may put away what it has begun."""
    source = f"""
        import asyncio
        async def answer(prompt):
            try:
                await asyncio.sleep(60)
            finally:
                open({str(tmp_path / "ended")!r}, "w").close()
    """
    with pytest.raises(TimeoutError, match=r"^$"):
        ask(python(write, source), within=0.3)
    until = time.monotonic() + 5
    while not (tmp_path / "ended").exists() and time.monotonic() < until:
        time.sleep(0.02)
    assert (tmp_path / "ended").exists()


def test_a_function_sees_the_context_that_it_is_called_in(write):
    """Variables of the context arrive, whether it is synchronous or not."""
    source = """
        import contextvars
        CITY = contextvars.ContextVar("CITY")
        def answer(prompt): return CITY.get()
        async def later(prompt): return CITY.get()
    """
    for name in ("answer", "later"):
        agent = python(write, source, name)
        token = sys.modules["my_agent"].CITY.set("Paris")
        assert ask(agent).text == "Paris"
        sys.modules["my_agent"].CITY.reset(token)


def test_a_function_that_hangs_does_not_keep_the_program_from_ending(write):
    """A program that has given up on it ends at once."""
    folder = write(
        stuck="import time\ndef answer(prompt): time.sleep(60)\n",
        program="""
            import anyio
            from pathlib import Path
            from agentic_bayes.suites.agents.registry import make_agent
            from agentic_bayes.suites.declaration import AgentConfig
            from agentic_bayes.suites.trial import SuiteTask, TrialAttempt

            config = AgentConfig(type="python", config={"function": "stuck:answer"})
            agent = make_agent(config, folder=Path(__file__).parent)

            async def run():
                with anyio.move_on_after(0.1):
                    await agent.attempt(TrialAttempt(SuiteTask("t", ("a",)), 0, 0))

            anyio.run(run)
        """,
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    subprocess.run([sys.executable, str(folder / "program.py")], env=environment, check=True, timeout=40)


def test_synchronous_functions_run_side_by_side(write):
    """As many as the suite says, also beyond the usual number of threads."""
    agent = python(write, "import time\ndef answer(prompt):\n    time.sleep(0.3)\n    return prompt\n")

    async def run() -> float:
        started = time.perf_counter()
        async with anyio.create_task_group() as group:
            for _ in range(60):
                group.start_soon(agent.attempt, one())
        return time.perf_counter() - started

    assert anyio.run(run) < 2.5


def test_each_suite_has_its_own_module_of_a_name(write, tmp_path):
    """Another suite's module of the same name is not taken for it, nor are the modules that it imports."""
    first = write(tmp_path / "a", bot="import part\ndef answer(prompt): return part.NAME\n", part="NAME = 'first'\n")
    second = write(tmp_path / "b", bot="import part\ndef answer(prompt): return part.NAME\n", part="NAME = 'second'\n")
    path = list(sys.path)
    agents = [make_agent(declared("python", function="bot:answer"), folder=f) for f in (first, second, first)]
    assert [ask(agent).text for agent in agents] == ["first", "second", "first"]
    assert sys.path == path


def test_what_a_function_imports_when_it_is_called_is_in_the_suite_s_folder(write, tmp_path, monkeypatch):
    """Each suite's own, before anything else on the path, as it is now; nobody else finds it there."""
    lazy = "def answer(prompt):\n    import {0}\n    return {0}.NAME\n"
    first = write(
        tmp_path / "a", bot=lazy.format("part_a"), part_a="import below\nNAME = below.NAME\n", below="NAME = 1"
    )
    second = write(tmp_path / "b", bot=lazy.format("part_b"), part_b="NAME = 'second'\n")
    (first / "below.py").write_text("NAME = 'first'\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(write(tmp_path / "lib", part_a="NAME = 'elsewhere'\n")))
    agents = [make_agent(declared("python", function="bot:answer"), folder=f) for f in (first, second)]
    assert [ask(agent).text for agent in agents] == ["first", "second"]
    (first / "below.py").write_text("NAME = 'changed'\n", encoding="utf-8")
    assert ask(make_agent(declared("python", function="bot:answer"), folder=first)).text == "changed"
    assert importlib.util.find_spec("below_nothing") is None
    sys.modules.pop("part_b")
    assert importlib.util.find_spec("part_b") is None


def test_a_module_may_change_the_path_along_which_modules_are_found(write, monkeypatch):
    """Also take from it what was put there for it; the rest stays."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    path = list(sys.path)
    agent = python(write, "import sys\nsys.path.pop(0)\ndef answer(prompt): return 'here'\n")
    assert ask(agent).text == "here"
    assert sys.path == path


def test_a_module_that_was_changed_is_loaded_anew(write, tmp_path):
    """An unchanged one is the same object; a change counts, also in what the module imports, also within a second."""
    folder = write(bot="import part\nSEEN = object()\ndef answer(prompt): return part.NAME\n", part="NAME = 'old'\n")
    config = declared("python", function="bot:answer")
    assert ask(make_agent(config, folder=folder)).text == "old"
    loaded = sys.modules["bot"]
    make_agent(config, folder=folder)
    assert sys.modules["bot"] is loaded
    write(part="NAME = 'new'\n")
    assert ask(make_agent(config, folder=folder)).text == "new"


def test_a_module_may_stand_elsewhere(write, tmp_path, monkeypatch):
    """On PYTHONPATH, or as part of a package; the suite's folder is looked at first."""
    elsewhere = write(tmp_path / "lib", helper_of_agents="def answer(prompt): return 'elsewhere'\n")
    (elsewhere / "pack").mkdir()
    write(elsewhere / "pack", __init__="", inner="class A:\n    @staticmethod\n    def f(prompt): return 'inner'\n")
    monkeypatch.syspath_prepend(str(elsewhere))
    folder = write(tmp_path / "suite")
    assert ask(make_agent(declared("python", function="helper_of_agents:answer"), folder=folder)).text == "elsewhere"
    assert ask(make_agent(declared("python", function="pack.inner:A.f"), folder=folder)).text == "inner"
    write(folder, helper_of_agents="def answer(prompt): return 'here'\n")
    assert ask(make_agent(declared("python", function="helper_of_agents:answer"), folder=folder)).text == "here"


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("my_agnet:answer", r"no module 'my_agnet' in .*, nor on PYTHONPATH \(did you mean 'my_agent'\?\)"),
        ("my_agent.part:answer", "importing my_agent.part failed|no module 'my_agent.part'"),
        ("my_agent:anser", "my_agent has no 'anser': did you mean 'answer'"),
        ("my_agent:NUMBER", "must be a function, got 5"),
        ("my_agent:needs", r"must be callable as function\(prompt, …\).*missing a required argument: 'city'"),
        ("my_agent:no_place", "too many positional arguments"),
        ("my_agent:messages_first", "its first parameter gets the prompt, but is named messages"),
        ("broken:answer", r"importing broken failed: ZeroDivisionError: .*division.* \(broken\.py, line 2\)"),
        ("torn:answer", r"importing torn failed: SyntaxError: .*\(torn\.py, line 1\)"),
        ("leaving:answer", "importing leaving failed: SystemExit"),
        ("odd:answer", r"importing odd failed: BaseException: 'boo' \(odd\.py, line 1\)"),
        ("json:answer", "has the name of a module that is already in use: rename it"),
    ],
)
def test_a_function_that_cannot_be_had_is_a_problem_of_the_suite(write, function, message):
    """With the nearest name, or the line at which its module fails."""
    folder = write(
        my_agent="""
            NUMBER = 5
            def answer(prompt): return ""
            def needs(prompt, city): return ""
            def no_place(*, seed): return ""
            def messages_first(messages): return ""
        """,
        broken="x = 1\ny = x / 0\n",
        torn="def answer(:\n",
        leaving="import sys\nsys.exit(1)\n",
        odd="raise BaseException('boo')\n",
        json="def answer(prompt): return ''\n",
    )
    with pytest.raises(SuiteError, match=message):
        make_agent(declared("python", function=function), folder=folder)


# Commands


def script(write: Callable[..., Path], source: str, **config: Any) -> Agent:
    """An agent that is a Python program."""
    folder = write(program=source)
    return make_agent(declared("command", command=[sys.executable, "program.py"], **config), folder=folder)


def test_a_command_is_told_the_trial_as_json_and_replies_as_json(write):
    """Everything that is known of the trial on standard input, in the suite's folder, with its variables."""
    source = """
        import json, os, sys
        told = json.load(sys.stdin)
        told["cwd"], told["port"] = os.path.basename(os.getcwd()), os.environ["PORT"]
        print(json.dumps({"answer": json.dumps(told), "tool_calls": [{"name": "f", "arguments": "{}"}],
                          "usage": {"input_tokens": 1, "output_tokens": 2}}))
    """
    agent = script(write, source, env={"PORT": 8080})
    reply = ask(agent, one("a", "ü", system="s", params={"x": [1]}, trial=2))
    last = json.loads(reply.text)
    messages = last.pop("messages")
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user"]
    assert last.pop("cwd") == write().name
    assert last == {
        "prompt": "ü",
        "system": "s",
        "task_id": "capital",
        "trial": 2,
        "seed": 17,
        "params": {"x": [1]},
        "port": "8080",
    }
    assert reply.tool_calls == ([{"tool_name": "f", "parameters": {}}],) * 2
    assert (reply.input_tokens, reply.output_tokens) == (2, 4)


@pytest.mark.parametrize(
    ("command", "answer"),
    [
        ("echo hello; echo world", "hello\nworld"),
        ("printf ' x '", " x "),
        ("true", ""),
        ("""echo '{"total": 3}'""", '{"total": 3}'),
        ("""echo '{"messages": 3, "total": 1}'""", '{"messages": 3, "total": 1}'),
        ("echo 42", "42"),
        ("echo '{torn'", "{torn"),
        ("""printf '{"a": 1}\\n{"answer": 2}\\n'""", '{"a": 1}\n{"answer": 2}'),
        ("""echo '{"answer": "yes"}'""", "yes"),
        ("cat >/dev/null; echo noise >&2; echo ok", "ok"),
    ],
)
def test_a_command_may_write_plain_text(tmp_path, command, answer):
    """What is no object with an answer is the answer, without its last line end; standard error is not part of it."""
    assert ask(make_agent(declared("command", command=command), folder=tmp_path)).text == answer


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("echo first >&2; echo 'no key' >&2; echo '' >&2; exit 3", "^the command ended with status 3: no key$"),
        ("exit 4", "^the command ended with status 4$"),
        ("kill -9 $$", "was ended by SIGKILL"),
        ("no-such-program-here", "ended with status 127: .*no-such-program-here"),
        ("yes", r"wrote more than 1,000 bytes \(max_output\)"),
        (r"printf '\377'", "must write UTF-8"),
        ("""echo '{"answer": 5}'""", "answer must be text, got 5"),
        ("""echo '{"answer": "x", "tools": []}'""", "unknown key 'tools'"),
        ("""echo '{"answer":'""", r"wrote JSON that is broken \(Expecting value: line . column .* \(char .*\)\): "),
        ("""echo ' { "answer": "x", }'""", "wrote JSON that is broken"),
    ],
)
def test_a_command_that_fails_is_an_error_with_the_last_line_it_wrote(tmp_path, command, message):
    """Status, signal, too much output, or a reply that is none."""
    agent = make_agent(declared("command", command=command, max_output=1000), folder=tmp_path)
    with pytest.raises(AgentError, match=message):
        ask(agent)


def test_a_command_need_not_read_what_it_is_told(tmp_path):
    """A prompt larger than a pipe does not hold it up, nor do large outputs on both sides."""
    agent = make_agent(declared("command", command="echo done"), folder=tmp_path)
    assert ask(agent, one("x" * 1_000_000)).text == "done"
    agent = make_agent(declared("command", command="head -c 300000 /dev/zero | tr '\\0' e >&2; cat"), folder=tmp_path)
    assert len(json.loads(ask(agent, one("x" * 1_000_000)).text)["prompt"]) == 1_000_000


def is_running(pid: int) -> bool:
    """Whether a process is there, and not only waiting to be forgotten."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def ends(pid: int, *, within: float = 5) -> bool:
    """Whether a process ends soon."""
    until = time.monotonic() + within
    while is_running(pid):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs /proc")
def test_nothing_that_a_command_started_outlives_it(tmp_path):
    """Neither when its time is up, nor when it ends and leaves something behind that holds its output open."""
    slow = make_agent(declared("command", command="sleep 60 & echo $! > child; wait"), folder=tmp_path)
    with pytest.raises(TimeoutError, match=r"^$"):
        ask(slow, within=0.5)
    assert ends(int((tmp_path / "child").read_text()))
    leaves = make_agent(declared("command", command="sleep 60 & echo $! > child; echo done"), folder=tmp_path)
    started = time.perf_counter()
    assert ask(leaves).text == "done"
    assert time.perf_counter() - started < 30
    assert ends(int((tmp_path / "child").read_text()))


def test_what_has_left_the_group_of_a_command_does_not_hold_up_its_end(tmp_path):
    """Though it holds the output open."""
    agent = make_agent(declared("command", command="setsid sleep 60 & echo done"), folder=tmp_path)
    started = time.perf_counter()
    assert ask(agent).text == "done"
    assert time.perf_counter() - started < 30


def test_a_command_sees_the_variables_that_it_is_given(tmp_path):
    """An environment in place of the process's own, and the declaration's variables on top of it."""
    config = declared("command", command='echo "$A $B"', env={"B": "2"})
    agent = make_agent(config, folder=tmp_path, environment={"A": "1", "B": "0", "PATH": os.environ["PATH"]})
    assert ask(agent).text == "1 2"


# Addresses


@dataclass
class Exchange:
    """What a server replies, and what it was asked."""

    body: Any = "ok"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    seen: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""


@pytest.fixture
def server() -> Exchange:
    """A server on this machine that replies as it is told."""
    exchange = Exchange()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            content = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
            exchange.seen.append(
                {"method": self.command, "path": self.path, "headers": dict(self.headers), "content": content}
            )
            body = exchange.body if isinstance(exchange.body, str) else json.dumps(exchange.body)
            self.send_response(exchange.status)
            for name, value in exchange.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body.encode())))
            self.end_headers()
            self.wfile.write(body.encode())

        do_GET = do_PUT = do_POST

        def log_message(self, *arguments: Any) -> None:
            """Say nothing."""

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running.daemon_threads = True
    exchange.url = f"http://127.0.0.1:{running.server_address[1]}"
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield exchange
    running.shutdown()
    running.server_close()
    thread.join(5)


def http(server: Exchange, path: str = "/", **config: Any) -> Agent:
    """An agent at the server."""
    return make_agent(declared("http", url=server.url + path, **config), folder=Path.cwd())


def test_placeholders_are_replaced_by_values_or_within_text(server):
    """Text that is one placeholder becomes the value; within other text JSON; in the address it is quoted."""
    agent = http(
        server,
        "/ask/{{task_id}}?q={{prompt}}",
        headers={"X-Trial": "no {{trial}}", "Authorization": "Bearer k"},
        body={
            "all": "{{ messages }}",
            "seed": "{{seed}}",
            "list": [1, "{{params.deep.x}}", "{{prompt}} / {{params}} {{ {{", None],
        },
    )
    reply = ask(agent, one("a&b ü {{seed}}", trial=1, params={"deep": {"x": [True]}}))
    assert reply == AgentReply(("ok",), (None,))
    (request,) = server.seen
    assert request["path"] == "/ask/capital?q=a%26b%20%C3%BC%20%7B%7Bseed%7D%7D"
    assert request["headers"]["X-Trial"] == "no 1"
    assert json.loads(request["content"]) == {
        "all": [{"role": "user", "content": "a&b ü {{seed}}"}],
        "seed": 17,
        "list": [1, [True], 'a&b ü {{seed}} / {"deep": {"x": [true]}} {{ {{', None],
    }


def test_without_a_body_prompt_and_messages_are_sent(server):
    """With GET nothing is sent; a body that is text is sent as it is."""
    ask(http(server), one("a", "b"))
    assert [json.loads(request["content"])["prompt"] for request in server.seen] == ["a", "b"]
    assert len(json.loads(server.seen[1]["content"])["messages"]) == 3
    ask(http(server, method="get"))
    ask(http(server, method="PUT", body="say: {{prompt}}"))
    assert [(request["method"], request["content"]) for request in server.seen[2:]] == [
        ("GET", ""),
        ("PUT", "say: Hello?"),
    ]


def test_answer_calls_and_tokens_are_found_by_their_paths(server):
    """As in a completion of OpenAI; calls that are not there were not made."""
    message = {"content": "4", "tool_calls": [{"id": "1", "function": {"name": "add", "arguments": '{"a": 2}'}}]}
    server.body = {"choices": [{"message": message}], "usage": {"prompt_tokens": 3, "completion_tokens": 4}}
    paths = {
        "answer": "$.choices[0].message.content",
        "tool_calls": "$.choices[0].message.tool_calls",
        "usage": {"input_tokens": "$.usage.prompt_tokens", "output_tokens": "$.usage.completion_tokens"},
    }
    calls = [{"tool_name": "add", "parameters": {"a": 2}}]
    assert ask(http(server, **paths)) == AgentReply(("4",), (calls,), 3, 4)
    message["content"] = None
    assert ask(http(server, **paths)) == AgentReply(("",), (calls,), 3, 4)
    server.body = {"choices": [{"message": {"content": "4"}}]}
    assert ask(http(server, **paths)) == AgentReply(("4",), ([],))


@pytest.mark.parametrize(
    ("body", "path", "answer"),
    [
        ({"content": [{"text": "a"}, {"text": "b"}]}, "$.content[*].text", "ab"),
        ({"total": 3}, "$.total", "3"),
        ({"a": {"ü": 1}}, "$.a", '{"ü": 1}'),
        ('"plain"', "$", "plain"),
    ],
)
def test_an_answer_may_be_in_pieces_or_no_text(server, body, path, answer):
    """Texts are joined; a number or an object is its JSON text."""
    server.body = body
    assert ask(http(server, answer=path)).text == answer


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (500, "it\nbroke " + "x" * 300, r"^the reply has status 500: it broke x{191}…$"),
        (404, "", r"status 404: \(empty\)"),
        (302, "moved", "status 302: moved"),
        (200, "<html>", "^the reply must be JSON, got <html>$"),
        (200, {"aswer": "x"}, r'holds no answer at \$\.answer \(answer\): \{"aswer": "x"\}'),
        (200, {"answer": None}, "holds no answer"),
        (200, '"answer"', "holds no answer"),
        (200, "5", "holds no answer"),
        (200, "[" * 100_000, "must be JSON, got"),
        (200, '{"answer": NaN}', r'must be JSON, got \{"answer": NaN\}'),
        (200, '{"answer": 1e999}', "must be JSON, got"),
        (200, f'{{"answer": "x", "usage": {"9" * 400}}}', r"whole numbers ≤ 2\*\*53"),
        (200, f'{{"answer": "x", "usage": {"9" * 5000}}}', "must be JSON, got"),
        (200, {"answer": "x" * 2000}, r"longer than 1,000 bytes \(max_output\)"),
        (200, {"answer": "x", "usage": "many"}, "whole numbers ≥ 0, got 'many'"),
    ],
)
def test_a_reply_that_cannot_be_used_is_an_error_with_its_beginning(server, status, body, message):
    """A status that is no success, what is no JSON, a path that leads nowhere, too much."""
    server.status, server.body = status, body
    limit = 200_000 if isinstance(body, str) else 1000
    agent = http(server, answer="$.answer", usage={"input_tokens": "$.usage"}, max_output=limit)
    with pytest.raises(AgentError, match=message):
        ask(agent)


def test_a_param_that_a_task_lacks_is_named(server):
    """Nothing is sent then."""
    with pytest.raises(AgentError, match=r"\{\{params\.city\}\}, but task 'capital' has no such"):
        ask(http(server, body="{{params.city}}"))
    assert server.seen == []


def test_no_cookie_goes_from_one_trial_to_the_next(server):
    """Trials are independent of each other."""
    server.headers = {"set-cookie": "session=1"}
    agent = http(server)

    async def run() -> None:
        await agent.attempt(one())
        await agent.attempt(one())
        await agent.close()

    anyio.run(run)
    assert ["cookie" in {name.lower() for name in request["headers"]} for request in server.seen] == [False, False]


def test_a_server_that_is_not_there_is_an_error():
    """As the client tells it."""
    import httpx

    with pytest.raises(httpx.ConnectError, match=r"\w"):
        ask(make_agent(declared("http", url="http://127.0.0.1:9/"), folder=Path.cwd()))


# Models


def test_a_model_is_asked_through_its_package():
    """System prompt, parameters and dialogue arrive; tokens are counted over all turns."""
    with ChatServer(lambda request: Completion(f"answer {request.number}")) as provider:
        config = declared(
            "openai", model="m", base_url=provider.url, temperature=0.5, max_tokens=9, options={"seed": 1}
        )
        reply = ask(make_agent(config, folder=Path.cwd(), environment={}), one("a", "b", system="be brief"))
    assert reply == AgentReply(("answer 0", "answer 1"), ([], []), 1000, 40)
    last = provider.requests[1].body
    assert [(message["role"], message["content"]) for message in last["messages"]] == [
        ("system", "be brief"),
        ("user", "a"),
        ("assistant", "answer 0"),
        ("user", "b"),
    ]
    assert (last["model"], last["temperature"], last["seed"]) == ("m", 0.5, 1)
    assert 9 in (last.get("max_tokens"), last.get("max_completion_tokens"))


TOOL = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "adds",
        "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}},
    },
}


def test_a_model_may_be_tried_for_its_calls():
    """The calls are in the reply, also badly written ones; before the next message they are answered as not run."""
    contents = iter(['{"a": 1}', '{"a": '])
    with ChatServer(lambda _: Completion(next(contents))) as provider:
        config = declared("openai", model="m", base_url=provider.url, tools=[TOOL], tool_choice="auto")
        reply = ask(make_agent(config, folder=Path.cwd(), environment={}), one("a", "b"))
    assert reply.answers == ("", "")
    assert reply.tool_calls[0] == [{"tool_name": "add", "parameters": {"a": 1}}]
    assert reply.tool_calls[1][0]["tool_name"] == "add"
    assert [message["role"] for message in provider.requests[1].body["messages"]] == [
        "user",
        "assistant",
        "tool",
        "user",
    ]


def test_a_model_that_refuses_gives_its_refusal_and_one_that_fails_an_error():
    """A refusal is an answer; the provider's failure is not, and is not repeated behind the suite's back."""
    import openai

    with ChatServer(lambda _: Completion(refusal="I will not")) as provider:
        config = declared("openai", model="m", base_url=provider.url)
        assert ask(make_agent(config, folder=Path.cwd(), environment={})).text == "I will not"
    with ChatServer(lambda _: Completion("overloaded", status=503)) as provider:
        config = declared("openai", model="m", base_url=provider.url)
        with pytest.raises(openai.APIStatusError, match="overloaded"):
            ask(make_agent(config, folder=Path.cwd(), environment={}))
    assert len(provider.requests) == 1


def test_a_key_comes_from_the_variable_that_is_named(monkeypatch):
    """The provider's usual one unless given; without it, one line says which."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    for config, environment, name in (
        ({}, {}, "OPENAI_API_KEY"),
        ({}, None, "OPENAI_API_KEY"),
        ({"api_key_env": "MY_KEY", "base_url": "http://h"}, {"OPENAI_API_KEY": "k"}, "MY_KEY"),
    ):
        with pytest.raises(SuiteError, match=rf"api_key_env: the environment variable {name} must hold the key"):
            make_agent(declared("openai", model="m", **config), folder=Path.cwd(), environment=environment)
    make_agent(declared("openai", model="m", api_key_env="K"), folder=Path.cwd(), environment={"K": "k"})


def test_an_option_that_the_package_does_not_have_is_named():
    """With the nearest that it has; a tool that is none is refused, too."""
    with pytest.raises(
        SuiteError, match=r"options\.reasoning_efort: ChatOpenAI has no .* did you mean 'reasoning_effort'"
    ):
        make_agent(
            declared("openai", model="m", options={"reasoning_efort": "low"}),
            folder=Path.cwd(),
            environment={"OPENAI_API_KEY": "k"},
        )
    with pytest.raises(SuiteError, match=r"tools: cannot be given to the model"):
        make_agent(
            declared("openai", model="m", tools=[{"nothing": 1}]),
            folder=Path.cwd(),
            environment={"OPENAI_API_KEY": "k"},
        )


@pytest.mark.skipif(importlib.util.find_spec("langchain_anthropic") is not None, reason="the package is installed")
def test_a_package_that_is_missing_is_named():
    """With what installs it."""
    with pytest.raises((MissingPackage, InvalidArgument), match=r"langchain.anthropic"):
        make_agent(declared("anthropic", model="claude"), folder=Path.cwd(), environment={"ANTHROPIC_API_KEY": "k"})


# LangChain


CHAIN = """
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
    from langchain_core.output_parsers import StrOutputParser
    from langchain_core.prompts import ChatPromptTemplate
    from langchain_core.runnables import Runnable, RunnableLambda
    from tests.scripted import ScriptedChatModel

    USAGE = {"input_tokens": 3, "output_tokens": 4, "total_tokens": 7}

    def said(messages):
        return AIMessage(" ".join(f"{m.type[0]}:{m.content}" for m in messages), usage_metadata=USAGE)

    model = ScriptedChatModel(script=said)
    one_input = ChatPromptTemplate.from_messages([("system", "short"), ("human", "{question}")])
    text_chain = one_input | model | StrOutputParser()
    two_inputs = ChatPromptTemplate.from_messages([("human", "{question} {city}")]) | model

    def make():
        return model

    def fails_to_make():
        raise OSError("no licence")

    async def makes_later():
        return model

    class Graph(Runnable):
        "A graph as LangGraph has them: messages in, all messages out."
        def get_input_jsonschema(self, **kw):
            return {"type": "object", "properties": {"messages": {"type": "array"}}}
        def invoke(self, state, config=None, **kw):
            n = len(state["messages"])
            call = {"name": "add", "args": {"n": n}, "id": f"c{n}"}
            return {"messages": [*state["messages"], AIMessage("", tool_calls=[call], usage_metadata=USAGE),
                    ToolMessage("5", tool_call_id=f"c{n}"),
                    AIMessage(f"{n} {config['configurable']['seed']}", usage_metadata=USAGE)]}

    graph = Graph()
    only_new = RunnableLambda(lambda state: {"messages": [AIMessage(str(len(state["messages"])))]})
    as_dicts = RunnableLambda(
        lambda state: {"messages": [{"role": "assistant", "content": str(len(state["messages"]))}]})
    executor = RunnableLambda(lambda messages: {"output": "done"})
    odd = RunnableLambda(lambda messages: 5)
    wrong_calls = RunnableLambda(lambda messages: AIMessage("", invalid_tool_calls=[
        {"name": "f", "args": "{bad", "id": "1", "error": None, "type": "invalid_tool_call"}]))
    number = 5
"""


def chain(write: Callable[..., Path], name: str, **config: Any) -> Agent:
    """An agent that is an object of LangChain."""
    return make_agent(declared("langchain", object=f"my_chain:{name}", **config), folder=write(my_chain=CHAIN))


@pytest.mark.parametrize("name", ["model", "make"])
def test_a_chat_model_is_given_the_dialogue(write, name):
    """The object itself, or the one that a function makes."""
    reply = ask(chain(write, name), one("a", "b", system="s"))
    assert reply == AgentReply(("s:s h:a", "s:s h:a a:s:s h:a h:b"), ([], []), 6, 8)


def test_a_graph_is_given_its_state_and_keeps_its_own_messages(write):
    """The calls of each turn with their results; the next turn goes on with all that the graph gave."""
    reply = ask(chain(write, "graph"), one("a", "b"))
    assert reply.answers == ("1 17", "5 17")
    assert reply.tool_calls == (
        [{"tool_name": "add", "parameters": {"n": 1}, "result": "5"}],
        [{"tool_name": "add", "parameters": {"n": 5}, "result": "5"}],
    )
    assert (reply.input_tokens, reply.output_tokens) == (12, 16)


@pytest.mark.parametrize(
    ("name", "config", "answers"),
    [
        ("text_chain", {}, ("s:short h:a", "s:short h:b")),
        ("only_new", {"input": "state"}, ("1", "3")),
        ("as_dicts", {"input": "state"}, ("1", "3")),
        ("executor", {}, ("done", "done")),
    ],
)
def test_a_chain_is_given_what_it_asks_for(write, name, config, answers):
    """Messages, a state, or the text alone; text, a message or messages come back."""
    assert ask(chain(write, name, **config), one("a", "b")).answers == answers


def test_a_call_that_a_model_wrote_badly_is_a_call(write):
    """It is not lost, and is no breakdown."""
    (calls,) = ask(chain(write, "wrong_calls")).tool_calls
    assert [call["tool_name"] for call in calls] == ["f"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("two_inputs", "expects .*city.*: it must accept messages"),
        ("number", r"must be a LangChain Runnable or chat model, but my_chain:number is 5 \(int\)"),
        ("fails_to_make", "calling it raised OSError: 'no licence'"),
        ("makes_later", r"but my_chain:makes_later returned .* \(coroutine\)"),
        ("said", "calling it raised TypeError"),
    ],
)
def test_an_object_that_is_no_runnable_is_a_problem_of_the_suite(write, name, message):
    """It says what there is instead."""
    with pytest.raises(SuiteError, match=message):
        chain(write, name)


def test_a_chain_that_gives_something_else_is_an_error(write):
    """It names what came."""
    with pytest.raises(AgentError, match=r"must return a message, text or an object with messages, got 5 \(int\)"):
        ask(chain(write, "odd"))


# Identities


def test_an_identity_tells_what_changes_the_agent_and_no_secrets(write, tmp_path):
    """Equal declarations are equal, different ones are not; headers, variables, keys and passwords are left out."""
    folder = write(my_agent="def answer(prompt): return ''\ndef other(prompt): return ''\n", my_chain=CHAIN)
    make = functools.partial(make_agent, folder=folder, environment={"OPENAI_API_KEY": "S3CRET", "PATH": os.defpath})
    openai = {"model": "m", "base_url": "http://me:S3CRET@h/v1"}
    http = {"url": "http://me:S3CRET@h/a?key=S3CRET", "headers": {"Authorization": "S3CRET"}, "body": {"k": "S3CRET"}}
    command = {"command": "TOKEN=S3CRET /bin/cat S3CRET", "env": {"A": "S3CRET"}}
    different = [
        declared("python", function="my_agent:answer"),
        declared("python", function="my_agent:other"),
        declared("openai", **openai),
        declared("openai", **openai, temperature=0),
        declared("openai", **openai, options={"seed": 1}),
        declared("openai", **openai, tools=[TOOL]),
        declared("http", **http),
        declared("http", **{**http, "body": {}}),
        declared("http", **http, answer="$.x"),
        declared("command", **command),
        declared("command", command="/bin/cat"),
        declared("langchain", object="my_chain:model"),
    ]
    identities = [make(config).identity for config in different]
    assert len(set(identities)) == len(different)
    assert identities == [make(config).identity for config in different]
    assert not [identity for identity in identities if "S3CRET" in identity]
    assert [identity.split()[0] for identity in identities] == [config.type for config in different]
    assert all(isinstance(make(config), Agent) for config in different)
    assert re.search(r'"program": "cat"', identities[9])
