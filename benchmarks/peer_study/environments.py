"""One virtual environment per peer, and a call of its worker: JSON in, JSON out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WORKERS = Path(__file__).resolve().parent / "workers"
ROOT = WORKERS.parents[2]
INSTALL_SECONDS, WORK_SECONDS = 1800, 7200


@dataclass(frozen=True)
class Peer:
    """A package to compare with."""

    name: str
    requirements: tuple[str, ...]  # for pip; none: the interpreter that runs the study
    uses: str  # what the study calls, for the page

    @property
    def worker(self) -> Path:
        """The script that runs in the peer's environment."""
        return WORKERS / f"{self.name.replace('-', '_')}_worker.py"


# the package under test comes first; a peer without a worker cannot be installed here
PEERS = (
    Peer("agentic-bayes", (), "`estimate(outcomes)` with its defaults, `judge_labels`, `LLMJudge`"),
    Peer("bootstrap", (), "NumPy: percentiles of 1,000 resamples of the tasks; (c/n)^k of each task"),
    Peer("evalstats", ("evalstats",), "`mean_ci` on the tasks' unbiased values, `judge_debias_mean_ci`"),
    Peer("inspect-ai", ("inspect-ai",), "`mean_score`, `pass_k`, `pass_at` over epochs, then the metric `ci`"),
    Peer("scorio", ("scorio",), "`pass_at_k_ci`, `pass_hat_k_ci`: a Beta(1, 1) for each task"),
    Peer("gaussia", ("gaussia",), "`BayesianMode` on all attempts, `pass_pow_k`, `Agentic` with a scripted model"),
    Peer("bayesbench", ("bayesbench",), "`BetaPosterior` of all attempts: pass^1 only"),
    Peer("pymc-nutpie", ("pymc", "nutpie"), "beta-binomial model written by hand, 4 chains × 1,000 draws"),
    Peer("ppi-python", ("ppi-python",), "`ppi_mean_ci`"),
    Peer("truescore", ("truescore",), "`ppi_estimate`, with clusters where it accepts them"),
    Peer("hibayes", ("hibayes",), "its hierarchical models"),
)
# who has something to say about what
TAKING_PART = {
    "intervals": (
        "agentic-bayes",
        "bootstrap",
        "evalstats",
        "inspect-ai",
        "scorio",
        "gaussia",
        "bayesbench",
        "pymc-nutpie",
    ),
    "judged": ("agentic-bayes", "evalstats", "ppi-python", "truescore"),
    "predicted": ("agentic-bayes", "bootstrap", "inspect-ai", "scorio", "gaussia"),
    "judge": ("agentic-bayes", "gaussia"),
}


@dataclass(frozen=True)
class Environment:
    """Where a peer runs, or why it does not."""

    peer: Peer
    python: str
    reason: str = ""  # empty: installed

    def call(self, job: str, **material: Any) -> dict[str, Any]:
        """The worker's answer, or `{"error": the last line it wrote}`."""
        done = _run(
            [self.python, str(self.peer.worker)], WORK_SECONDS, json.dumps({"job": job, **material}), **_variables(self)
        )
        return json.loads(done.stdout) if done.returncode == 0 else {"error": _last_line(done)}


def environment(peer: Peer, cache: Path) -> Environment:
    """The peer's environment, made with pip unless a run before this one has made it."""
    if not peer.requirements:
        return Environment(peer, sys.executable)
    folder = cache / peer.name
    python, stamp = folder / "bin" / "python", folder / "installed"
    if not (stamp.exists() and stamp.read_text() == "\n".join(peer.requirements)):
        _run([sys.executable, "-m", "venv", "--clear", str(folder)], INSTALL_SECONDS)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--no-compile", "--disable-pip-version-check"]
        done = _run([*pip, *peer.requirements], INSTALL_SECONDS)
        if done.returncode:
            return Environment(peer, str(python), _last_line(done))
        stamp.write_text("\n".join(peer.requirements))
    return Environment(peer, str(python))


def _variables(environment: Environment) -> dict[str, str]:
    """One thread for linear algebra; our own package from this checkout, and nobody else's."""
    return {"OMP_NUM_THREADS": "1", "PYTHONPATH": "" if environment.peer.requirements else str(ROOT)}


def _run(
    command: list[str], seconds: float, text: str | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    variables = {**os.environ, **variables}
    variables.pop("PYTHONDONTWRITEBYTECODE", None)
    try:
        return subprocess.run(
            command, input=text, capture_output=True, text=True, timeout=seconds, env=variables, check=False
        )
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(command, 1, "", f"stopped after {seconds:g} s")


def _last_line(done: subprocess.CompletedProcess[str]) -> str:
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    return (errors or lines or ["no message"])[-1].removeprefix("ERROR: ")[:300]


def environments(job: str, cache: Path) -> dict[str, Environment]:
    """The peers that take part in a job and are installed."""
    found = {peer.name: environment(peer, cache) for peer in PEERS if peer.name in TAKING_PART[job]}
    return {name: e for name, e in found.items() if not e.reason}


def installed(cache: Path) -> list[dict[str, str]]:
    """Every peer with what is used of it, and its version or why it is missing."""
    rows = []
    for peer in PEERS:
        e = environment(peer, cache)
        answer = {"error": e.reason} if e.reason else e.call("version")
        version, reason = str(answer.get("result", "")), str(answer.get("error", ""))
        rows.append({"peer": peer.name, "uses": peer.uses, "version": version, "reason": reason})
    return rows
