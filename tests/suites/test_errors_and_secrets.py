"""What goes wrong in a suite is said, once and with its reason; what is secret is said nowhere."""

import asyncio
import base64
import http.server
import json
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import httpx
import pytest
from typer.testing import CliRunner

from agentic_bayes.cli.app import app
from agentic_bayes.errors import (
    AgentError,
    AgenticBayesWarning,
    DoubtfulRecords,
    HookFailed,
    InvalidArgument,
    OutcomesError,
    SuiteError,
    described,
)
from agentic_bayes.redaction import Secrets
from agentic_bayes.suites.agents.reply import turn_of
from agentic_bayes.suites.config import load_suite
from agentic_bayes.suites.results import RunResults, error_reasons
from agentic_bayes.suites.runner import plan_run, run_suite
from agentic_bayes.suites.stores.run_index import find_run
from agentic_bayes.suites.trial import TrialResult

CRASHES = """
def answer(prompt, trial):
    if trial % 2:
        raise ValueError("the tool server is down")
    return "a refund"
"""
COUNTS = """
def answer(prompt, seed):
    with open("asked", "a") as asked:
        print(prompt, file=asked)
    return f"{seed % 7}"
"""


@pytest.fixture
def make(tmp_path, monkeypatch):
    """A suite with an agent in Python, in the folder that is the current one."""
    monkeypatch.chdir(tmp_path)

    def write(agent, *, tasks=2, trials=2, more="", module="agent"):
        (tmp_path / f"{module}.py").write_text(agent)
        listed = [(f"t{i}", {"prompt": f"p{i}"}, {"kind": "ab"[i % 2]}) for i in range(tasks)]
        named = [dict(zip(("id", "input", "metadata"), task, strict=True)) for task in listed]
        (tmp_path / "tasks.yaml").write_text(json.dumps(named))
        graders = "[{type: contains, config: {keywords: [refund]}}]"
        path = tmp_path / "eval.yaml"
        path.write_text(
            f'name: s\nagent: {{type: python, config: {{function: "{module}:answer"}}}}\n'
            f"defaults: {{trials_per_task: {trials}, graders: {graders}}}\ntask_files: [tasks.yaml]\n{more}\n"
        )
        return path

    return write


def command(*arguments):
    """What a command prints, and its exit code."""
    done = CliRunner().invoke(app, [str(one) for one in arguments])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.output, done.exit_code


def test_an_agent_that_crashes_on_odd_trials_decides_nothing_and_the_reasons_are_listed(make, tmp_path):
    """30 tasks × 10: half errored, so both gates are inconclusive; a resumed trial counts once, by its verdict."""
    path = make(CRASHES, tasks=30, trials=10, module="crashing")
    first, code = command("run", "-c", path, "--fail-under", 0.7, "--k", 1)
    assert code == 11
    assert "150 × ValueError: the tool server is down" in first
    shown, code = command("run", "-c", path, "--gate", "pass^1>=0.7", "--k", 1)
    assert code == 11
    assert "resuming" in shown
    (folder,) = (tmp_path / "results").iterdir()
    for text in (command("show", folder)[0], (folder / "junit.xml").read_text()):
        assert "ValueError: the tool server is down" in text
    summary = json.loads((folder / "summary.json").read_text())
    assert (summary["total_trials"], summary["passed_trials"], summary["error_trials"]) == (300, 150, 150)
    assert summary["error_reasons"] == [{"reason": "ValueError: the tool server is down", "trials": 150}]
    assert summary["tasks"][0]["error_reasons"][0]["trials"] == 5
    failed = RunResults.of(folder, errors="fail").outcomes
    assert (failed["trials"].values == 10).all()
    assert (failed["crashed"].values == 5).all(), "no judge has seen them, so its labels do not correct them"


def test_many_reasons_are_listed_by_how_often_they_occur():
    """Five, then how many more there are."""
    trials = [TrialResult("t", n, "error", error=f"e{min(n, 7)}") for n in range(10)]
    listed = error_reasons(trials)
    assert listed[0] == {"reason": "e7", "trials": 3}
    assert listed[-1] == {"reason": "3 other reasons", "trials": 3}
    assert sum(row["trials"] for row in listed) == 10


@pytest.mark.parametrize("error", ["quota", {"message": "quota", "code": 429}], ids=["text", "object"])
def test_an_agents_error_is_an_error_with_its_reason(error):
    """Though it also gives an answer; an error that is empty is none."""
    with pytest.raises(AgentError, match=r"^the agent reports an error: quota$"):
        turn_of({"answer": "so far", "error": error}, prompt="p")
    assert turn_of({"answer": "done", "error": None}, prompt="p").answer == "done"


def test_every_task_has_its_estimates(make, tmp_path):
    """pass@k and pass^k with intervals: in summary.json, in the CSV, on the screen and in the report, with failures."""
    path = make("def answer(prompt, trial):\n    return 'refund' if trial or prompt == 'p1' else ''", trials=3)
    shown, _ = command("run", "-c", path, "--k", "1,2")
    assert "Each task" in shown
    (folder,) = (tmp_path / "results").iterdir()
    tasks = json.loads((folder / "summary.json").read_text())["tasks"]
    for task in tasks:
        assert set(task["estimates"]) == {"pass@1", "pass@2", "pass^1", "pass^2"}
        for ends in task["estimates"].values():
            assert ends["lower"] <= ends["mean"] <= ends["upper"] or ends["upper"] == 1
    assert tasks[0]["estimates"]["pass^2"]["mean"] < tasks[1]["estimates"]["pass^2"]["mean"]
    assert "t0,task,pass^2" in (folder / "summary.csv").read_text()
    command("report", folder, "-o", tmp_path / "r.html", "--k", "1,2")
    page = (tmp_path / "r.html").read_text()
    assert '"pass^2":{"mean"' in page
    assert "Most common failure: missing fact, in 1 of 6 trials" in page


def test_tasks_are_grouped_by_a_field_of_their_metadata(make):
    """Each group has its numbers; a field that is not there is refused."""
    path = make("def answer(prompt):\n    return 'refund' if prompt == 'p0' else ''", tasks=4)
    shown, code = command("run", "-c", path, "--by", "kind", "--k", 1)
    assert code == 0
    assert "by kind" in shown
    with pytest.raises(InvalidArgument, match="tasks t0, t1, t2 and 1 more have no sort in their metadata"):
        command("run", "-c", path, "--by", "sort", "--new")


def test_output_format_json_prints_json(make):
    """As --to json does."""
    path = make("def answer(prompt):\n    return 'refund'", more="output: {format: json}")
    shown, _ = command("run", "-c", path, "--k", 1)
    assert json.loads(shown)["passed_trials"] == 4


def test_a_finished_run_is_estimated_by_group(make, tmp_path):
    """By its folder or its id, as `run --by` does; a field that no task has is refused."""
    command("run", "-c", make("def answer(prompt):\n    return 'refund' if prompt == 'p0' else ''", tasks=4), "--k", 1)
    (folder,) = (tmp_path / "results").iterdir()
    for name in (folder, folder.name):
        shown, _ = command("estimate", name, "--by", "kind", "--k", 1, "--to", "json")
        rows = [row for row in json.loads(shown)["summary"] if row["estimand"] == "population"]
        assert {row["group"] for row in rows if row["metric"] == "pass^1"} == {"", "a", "b", "(new group)"}
    with pytest.raises(OutcomesError, match="tasks need sort in their metadata"):
        command("estimate", folder, "--by", "sort")


def test_one_task_says_nothing_of_others(make, tmp_path):
    """And the run says so: when it ends, when it is shown, and in its summary."""
    shown, _ = command("run", "-c", make("def answer(prompt):\n    return 'refund'", tasks=1), "--k", 1)
    (folder,) = (tmp_path / "results").iterdir()
    again, _ = command("show", folder)
    for text in (shown, again, json.loads((folder / "summary.json").read_text())["note"]):
        assert "say how reliable the agent is on it, and nothing about other tasks" in " ".join(text.split())


def test_a_run_is_found_by_its_id_wherever_it_was_written(make, tmp_path, monkeypatch):
    """From any folder, to show it or to resume it; several runs are listed."""
    path = make("def answer(prompt):\n    return 'refund'")
    for name in ("one", "two"):
        command("run", "-c", path, "-o", tmp_path / name, "--k", 1)
    runs = [next((tmp_path / name).iterdir()) for name in ("one", "two")]
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert find_run(runs[0].name) == runs[0]
    shown, code = command("show", runs[0].name, runs[1])
    assert code == 0
    assert all(run.name in shown for run in runs)
    assert find_run("no-such-run") is None


def test_the_cache_answers_what_was_asked_before(make, tmp_path):
    """A new run of the same agent asks nothing and has the same verdicts; old replies and other agents are asked."""

    def asked():
        return len((tmp_path / "asked").read_text().splitlines())

    path = make(COUNTS, module="counting", more="cache: {enabled: true, dir: kept, ttl: 1h}")
    results = []
    for _ in range(2):
        suite = load_suite(path, environment={})
        planned = plan_run(suite, suite.tasks, new=True)
        asyncio.run(run_suite(planned))
        results.append(RunResults.of(planned.folder))
    assert asked() == 4
    assert (tmp_path / "kept").is_dir()
    assert [trial.answers for trial in results[0].trials] == [trial.answers for trial in results[1].trials]
    assert len({trial.answers for trial in results[0].trials}) > 1
    assert [results[i].to_dict()["cached_replies"] for i in (0, 1)] == [0, 4]
    with closing(sqlite3.connect(tmp_path / "kept" / "replies.sqlite")) as cache, cache:
        cache.execute("UPDATE replies SET reply = substr(reply, 9)")
    asyncio.run(run_suite(plan_run(suite, suite.tasks, new=True)))
    assert asked() == 8, "a damaged reply is asked for again"
    path.write_text(path.read_text().replace("ttl: 1h", "ttl: 0"))
    suite = load_suite(path, environment={})
    asyncio.run(run_suite(plan_run(suite, suite.tasks, new=True)))
    assert asked() == 12
    with closing(sqlite3.connect(tmp_path / "kept" / "replies.sqlite")) as cache, cache:
        cache.execute("CREATE TRIGGER full BEFORE INSERT ON replies BEGIN SELECT RAISE(ABORT, 'disk is full'); END")
    with pytest.warns(AgenticBayesWarning, match=r"replies\.sqlite cannot be written.*: disk is full") as warned:
        assert asyncio.run(run_suite(plan_run(suite, suite.tasks, new=True)))
    assert (asked(), len(warned)) == (16, 1), "the run goes on, and one warning says why replies are not cached"


@pytest.mark.parametrize("broken", ["\\0", "\\ud83d"], ids=["NUL", "half a pair"])
def test_ids_that_no_file_can_hold_are_refused_and_texts_are_mended(make, tmp_path, broken):
    """Ids with their place; a prompt, an answer or a reason is replaced and counted, and has a verdict."""
    path = make("def answer(prompt):\n    return 'refund \\x00'", tasks=1)
    tasks = tmp_path / "tasks.yaml"
    tasks.write_text(f'- {{id: "a{broken}", input: {{prompt: p}}}}')
    with pytest.raises(SuiteError, match=r"tasks\.yaml, line 1, \[0\]\.id: must"):
        load_suite(path, environment={})
    tasks.write_text(f'- {{id: a, input: {{prompt: "p{broken}"}}, metadata: {{x: "{broken}"}}}}')
    with pytest.warns(DoubtfulRecords, match="2 characters that are not text"):
        suite = load_suite(path, environment={})
    planned = plan_run(suite, suite.tasks)
    with pytest.warns(DoubtfulRecords):
        assert asyncio.run(run_suite(planned))
    assert RunResults.of(planned.folder).pending == 0


def test_an_error_of_a_connection_carries_its_cause():
    """Of libraries that hide it, too."""
    try:
        try:
            raise ConnectionRefusedError(111, "Connection refused")
        except OSError:
            raise RuntimeError("Connection error.") from None
    except RuntimeError as error:
        found = described(error)
    assert found == "RuntimeError: Connection error (ConnectionRefusedError: [Errno 111] Connection refused)"
    assert described(ValueError("plain")) == "ValueError: plain"
    hung_up = RuntimeError("Connection error.")
    hung_up.__cause__ = httpx.RemoteProtocolError("the server hung up")
    assert described(hung_up) == "RuntimeError: Connection error (RemoteProtocolError: the server hung up)"


@pytest.mark.parametrize("secret", ['sk+"1/ü\\9&<é', "12345678", "a b%c\nd=e&f"])
def test_a_secret_is_hidden_in_whatever_form_it_is_written(secret):
    """Escaped for JSON, Python and URLs, in base64 wherever it begins, and cut short."""
    hide = Secrets({secret: "${KEY}"}).in_text
    as_json = json.dumps(secret)
    quoted = [secret, as_json, json.dumps(as_json), repr(secret), quote(secret), quote(secret, "")]
    encoded = [base64.b64encode(f"{'u' * n}{secret}{'v' * m}".encode()).decode() for n in range(4) for m in range(4)]
    wrapped = [base64.encodebytes(b"u" * 50 + secret.encode()).decode(), secret[:5] + "\n    " + secret[5:]]
    other_case = [secret.upper(), secret.lower()] if secret.isascii() else []
    for text in (*quoted, *encoded, *wrapped, *other_case, secret.encode().hex()):
        assert "${KEY}" in hide(f"({text})"), text
    assert len(secret) == 8 or hide(f"it is {secret[:9]}…") == "it is ${KEY}…"
    assert hide("it is not here…") == "it is not here…"


CANARY = 'sk-canary+/"7\\3é9'
SHOUTS = """
import os, sys
SECRET = os.environ["CANARY_KEY"]
def answer(prompt, trial):
    print(SECRET)
    print(SECRET, file=sys.stderr)
    if trial:
        raise RuntimeError(f"401 for {SECRET!r}")
    return {"answer": f"my key is {SECRET}", "tool_calls": [{"tool_name": SECRET, "parameters": {SECRET: [SECRET]}}]}
"""


def spellings():
    """The canary as it might be written."""
    inside = [base64.b64encode(b"x" * n + CANARY.encode()).decode()[4:-4] for n in range(3)]
    return [CANARY, json.dumps(CANARY)[1:-1], json.dumps(CANARY, ensure_ascii=False)[1:-1], quote(CANARY), *inside]


def leaks(folder: Path, printed: str) -> list[str]:
    """Where the canary is."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name not in ("eval.yaml", "agent.py")]
    texts = {path.name: path.read_bytes() for path in files} | {"printed": printed.encode()}
    return [f"{name}: {text}" for name, content in texts.items() for text in spellings() if text.encode() in content]


def test_no_secret_is_in_any_byte_of_a_run_in_which_everything_fails(make, tmp_path, monkeypatch):
    """Agent, grader and hook all say the key: in answers, calls, errors, reasons, on both outputs, in the report."""
    monkeypatch.setenv("CANARY_KEY", CANARY)
    (tmp_path / "shout.sh").write_text('printf "%s" "$CANARY_KEY" | tee /dev/stderr | base64; exit 3')
    path = make(
        SHOUTS,
        module="shouting",
        more='hooks: {after_trial: "sh shout.sh"}\ndescription: "with ${CANARY_KEY}"\ncache: {enabled: true}',
    )
    command_grader = "{type: command, config: {command: sh shout.sh}}"
    path.write_text(path.read_text().replace("graders: [", f"graders: [{command_grader}, "))
    with pytest.warns(HookFailed, match="hook after_trial: ended with 3: .*CANARY_KEY"):
        printed, _ = command("run", "-c", path, "--k", 1)
    (folder,) = (tmp_path / "results").iterdir()
    again, _ = command("show", folder)
    command("report", folder, "-o", tmp_path / "report.html")
    (tmp_path / "tasks.yaml").write_text(
        '- {id: "", input: {prompt: 3, mesages: ["${CANARY_KEY}"]}, tags: "${CANARY_KEY}"}'
    )
    with pytest.raises(SuiteError, match="mesages") as refused:
        load_suite(path)
    assert leaks(tmp_path, f"{printed}{again}{refused.value}") == []
    trials = RunResults.of(folder).trials
    assert "my key is ${CANARY_KEY}" in {answer for trial in trials for answer in trial.answers}
    assert "${CANARY_KEY}" in printed


def test_a_short_variable_touches_nothing_unless_it_is_marked(make, tmp_path):
    """`${N}` = 1 is in every id and score; a PIN is a secret where the suite says so; a name is none."""
    agent = "def answer(prompt):\n    return f'{prompt} refund'"
    path = make(agent, more="variables: {PIN: {secret: true}, PLACE: {secret: false}}")
    (tmp_path / "tasks.yaml").write_text(
        '- {id: "t${N}", input: {prompt: "${N} ${PIN} ${PLACE} ${KEY}"}, tags: ["${TAG}"]}'
    )
    environment = {"N": "1", "PIN": "4711", "PLACE": "Amsterdam", "KEY": "abcdefgh", "TAG": "nightly-tasks"}
    suite = load_suite(path, environment=environment)
    hidden = suite.secrets.in_text("t1 4711 Amsterdam abcdefgh nightly-tasks")
    assert hidden == "t1 ${PIN} Amsterdam ${KEY} nightly-tasks"


def test_headers_and_keys_of_the_declaration_are_secret(tmp_path):
    """A server that repeats them does not get them into the results; its error is the reason."""

    class Echo(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            body = json.dumps({"error": {"message": f"bad key {self.headers['Authorization']}"}}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    path = tmp_path / "eval.yaml"
    path.write_text(
        f'name: s\nagent: {{type: http, config: {{url: "http://127.0.0.1:{server.server_port}", '
        'headers: {Authorization: "Bearer 0123456789abcdef"}}}\n'
        "defaults: {graders: [{type: exact_match}]}\n"
        "tasks: [{id: a, input: {prompt: p}, expected: {text: x}}]\n"
    )
    suite = load_suite(path, environment={})
    planned = plan_run(suite, suite.tasks)
    try:
        asyncio.run(run_suite(planned))
    finally:
        server.shutdown()
        server.server_close()
    (trial,) = RunResults.of(planned.folder).trials
    assert trial.error == "AgentError: the agent reports an error: bad key <agent.config.headers.Authorization>"


def test_a_cache_that_cannot_be_used_is_refused_before_anything_runs(make, tmp_path):
    """With its path."""
    (tmp_path / "kept").write_text("a file")
    suite = load_suite(make(CRASHES, more="cache: {enabled: true, dir: kept}"), environment={})
    with pytest.raises(InvalidArgument, match=r"cache\.dir: .*kept"):
        asyncio.run(run_suite(plan_run(suite, suite.tasks)))
