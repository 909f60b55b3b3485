"""Hooks are told what happens, and whatever they do stops nothing, holds nothing up and fills no memory."""

import subprocess
import sys
import time
import tracemalloc
from pathlib import Path

import anyio
import pytest

from agentic_bayes.errors import AgenticBayesWarning, HookFailed
from agentic_bayes.redaction import Secrets
from agentic_bayes.suites import processes as module
from agentic_bayes.suites.declaration import Hooks
from agentic_bayes.suites.processes import HookRunner, run_command


def hook(command: str, folder: Path) -> float:
    """Run a hook; the seconds that it took."""
    started = time.perf_counter()
    runner = HookRunner(Hooks(before_run=command), folder, Secrets({}))
    anyio.run(lambda: runner.run("before_run", run_id="r"))
    return time.perf_counter() - started


def test_a_hook_is_told_the_event_and_runs_in_the_folder(tmp_path):
    """As JSON on standard input; it need not read it."""
    hook("cat > told", tmp_path)
    assert (tmp_path / "told").read_text() == '{"event": "before_run", "run_id": "r"}'
    hook("true", tmp_path)


@pytest.mark.parametrize("command", ["sleep 66 & echo $! > child", "setsid sleep 8 & true"])
def test_what_a_hook_leaves_in_the_background_is_not_waited_for(tmp_path, command):
    """Though it holds standard error open."""
    assert hook(command, tmp_path) < 6


def test_what_a_hook_leaves_in_its_group_is_ended(tmp_path):
    """Nothing of it is left when the hook has ended."""
    hook("(sleep 1; touch late) & true", tmp_path)
    time.sleep(1.3)
    assert not (tmp_path / "late").exists()


def test_a_hook_that_floods_its_outputs_is_not_kept_in_memory(tmp_path):
    """Only the end of standard error is, for the warning, and of that line the beginning."""
    flood = "head -c 50000000 /dev/zero | tr '\\0' e"
    tracemalloc.start()
    try:
        with pytest.warns(HookFailed, match="^hook before_run: ended with 3: e{299}…$"):
            hook(f"{flood}; {flood} >&2; exit 3", tmp_path)
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_a_hook_that_takes_too_long_is_ended(tmp_path, monkeypatch):
    """With a warning."""
    monkeypatch.setattr(module, "_HOOK_SECONDS", 0.3)
    with pytest.warns(HookFailed, match=r"took longer than 0\.3 s"):
        assert hook("sleep 60", tmp_path) < 6


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has subreapers")
@pytest.mark.parametrize("limits", [{}, {"timeout": 0.3}, {"limit": 10}], ids=["ends", "takes too long", "floods"])
def test_a_grandchild_in_a_session_of_its_own_ends_with_its_command(tmp_path, limits):
    """However the command itself ended; and the user's own process has become nobody's parent."""
    rest = "exit 3" if not limits else "sleep 60" if "timeout" in limits else "yes"
    command = f"setsid sh -c 'setsid sleep 77 & echo $! > child; wait' & while ! [ -s child ]; do :; done; {rest}"
    ended = anyio.run(lambda: run_command(command, b"", folder=tmp_path, **limits))
    child = int((tmp_path / "child").read_text())
    assert not Path(f"/proc/{child}").exists()
    assert ended.status == (-9 if limits else 3)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has subreapers")
def test_commands_end_when_the_process_that_runs_them_is_killed(tmp_path):
    """Nobody is left to ask for their end."""
    code = (
        "import anyio, sys; from pathlib import Path; from agentic_bayes.suites.processes import run_command;"
        "anyio.run(lambda: run_command('setsid sleep 78 & echo $! > child; sleep 60', b'', folder=Path(sys.argv[1])))"
    )
    owner = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)])
    child = tmp_path / "child"
    while not child.exists() or not child.read_text().strip():
        time.sleep(0.01)
    owner.kill()
    owner.wait()
    for _ in range(500):
        if not Path(f"/proc/{child.read_text().strip()}").exists():
            return
        time.sleep(0.01)
    pytest.fail("it still runs")


def test_a_program_that_cannot_be_run_is_an_error_as_without_a_supervisor(tmp_path):
    """With the system's own words."""
    with pytest.raises(FileNotFoundError, match="No such file or directory"):
        anyio.run(lambda: run_command(["/no/such/program"], b"", folder=tmp_path))


def test_a_hook_that_always_fails_warns_once(tmp_path):
    """Though it runs before every trial."""

    async def twice():
        runner = HookRunner(Hooks(before_trial="exit 4"), tmp_path, Secrets({}))
        for trial in range(2):
            await runner.run("before_trial", trial=trial)

    with pytest.warns(HookFailed) as caught:
        anyio.run(twice)
    assert [str(one.message) for one in caught] == ["hook before_trial: ended with 4"]


def test_without_a_supervisor_the_process_group_still_ends_and_a_warning_says_what_does_not(tmp_path, monkeypatch):
    """As on macOS and Windows."""
    monkeypatch.setattr(sys, "platform", "darwin")
    module._can_supervise.cache_clear()
    try:
        with pytest.warns(AgenticBayesWarning, match="only Linux lets us end them"):
            hook("(sleep 0.4; touch late) & true", tmp_path)
    finally:
        module._can_supervise.cache_clear()
    time.sleep(0.6)
    assert not (tmp_path / "late").exists()
