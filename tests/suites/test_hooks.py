"""Hooks are told what happens, and whatever they do stops nothing, holds nothing up and fills no memory."""

import time
import tracemalloc
from pathlib import Path

import anyio
import pytest

from agentic_bayes.errors import HookFailed
from agentic_bayes.suites import processes as module
from agentic_bayes.suites.declaration import Hooks
from agentic_bayes.suites.processes import run_hook


def hook(command: str, folder: Path) -> float:
    """Run a hook; the seconds that it took."""
    started = time.perf_counter()
    anyio.run(run_hook, Hooks(before_run=command), "before_run", {"run_id": "r"}, folder)
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
