"""How long the HTML report of 5,000 tasks × 3 agents takes to write, open and sort, and how large it is.

``python benchmarks/report.py`` prints the seconds of `write_report` (without the estimate), the megabytes of the file
and, if Chromium and its driver are installed, the milliseconds to the first paint, to the first page of tasks, and from
the click that sorts to the sorted rows; medians of several loads. It does so for counts only, and for the evidence and
conversations of all 60,000 trials.
"""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import agentic_bayes as ab
from agentic_bayes.evidence.row import EvidenceRow

TASKS, AGENTS, TRIALS, LOADS = 5_000, ("v1", "v2", "v3"), 4, 5
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync")
SORT = """
const done = arguments[arguments.length - 1];
const button = document.querySelectorAll("#task-table thead button")[arguments[0]];
const start = performance.now();
button.click();
requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
"""
PAINT = "return performance.getEntriesByName('first-contentful-paint')[0].startTime"
READY = "return performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"


def simulated() -> tuple[ab.Evidence, list[ab.Conversation]]:
    """The scores and conversation of every trial."""
    rng = np.random.default_rng(0)
    ease = rng.beta(1.2, 0.8, TASKS)
    rows, conversations = [], []
    for agent, shift in zip(AGENTS, (0, 0.05, 0.02), strict=True):
        right = rng.random((TASKS, TRIALS)) < np.clip(ease + shift, 0, 1)[:, None]
        for i in range(TASKS):
            for trial in range(TRIALS):
                passed = bool(right[i, trial])
                identity = {"session_id": f"{agent}-{i}-{trial}", "trial": trial}
                reason = "The answer is right." if passed else f"Missing from the answer: {i % 40} EUR."
                scored = {"answer_score": float(passed), "answer_reason": reason, "judge": "j/1", "tool_rubric": "t/2"}
                question = {"task": f"task-{i}", "interaction": 0, "qa_id": f"q{i}"}
                rows.append(EvidenceRow(agent=agent, **identity, **question, **scored))  # type: ignore[arg-type]
                turn = {
                    "qa_id": f"q{i}",
                    "query": f"What does order {i} cost, with shipping, and when will it be here?",
                    "assistant": f"Order {i} costs {i % 40} EUR with shipping, and will be here in three days. " * 3,
                    "ground_truth_assistant": f"{i % 40} EUR, in three days",
                }
                record: dict[str, Any] = {"assistant_id": agent, "task_id": f"task-{i}", "conversation": [turn]}
                conversations.append(ab.Conversation.model_validate(identity | record))
    return ab.Evidence(tuple(rows)), conversations


def browser(folder: str) -> Any:
    """A headless Chromium; None if it is not installed."""
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        return None
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in (*FLAGS, f"--user-data-dir={folder}/profile"):
        options.add_argument(flag)
    return webdriver.Chrome(options=options, service=Service(driver))


def opened(page: Path, folder: str) -> str:
    """How fast Chromium opens and sorts the page, in words."""
    driver = browser(folder)
    if driver is None:
        return "no browser here: chromium and chromedriver are needed"
    try:
        paints, ready, sorts = [], [], []
        for _ in range(LOADS):
            driver.get(page.as_uri())
            sorts += [driver.execute_async_script(SORT, column) for column in (1, 2, 4, 0)]
            paints.append(driver.execute_script(PAINT))
            ready.append(driver.execute_script(READY))
        parts = zip(("first paint", "tasks shown", "sort"), (paints, ready, sorts), strict=True)
        return ", ".join(f"{name} {statistics.median(ms):.0f} ms (at most {max(ms):.0f})" for name, ms in parts)
    finally:
        driver.quit()


def main() -> None:
    """Measure a report without and with conversations."""
    evidence, conversations = simulated()
    est = ab.estimate(ab.count_outcomes(evidence))
    for name, more in (("counts", {}), ("conversations", {"evidence": evidence, "conversations": conversations})):
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder) / "report.html"
            start = time.perf_counter()
            ab.write_report(est, page, **more)  # type: ignore[arg-type]
            seconds = time.perf_counter() - start
            print(f"{name}: written in {seconds:.2f} s, {page.stat().st_size / 1e6:.1f} MB; {opened(page, folder)}")


if __name__ == "__main__":
    main()
