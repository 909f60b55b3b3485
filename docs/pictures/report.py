"""Make report.png, the first screen of a report with numbers on it: `python docs/pictures/report.py`.

It takes Chromium and its driver, as the tests of the report do.
"""

import base64
import io
import shutil
import tempfile
from pathlib import Path

from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

import agentic_bayes as ab

EXAMPLE = Path(__file__).parents[2] / "examples" / "support_agent"
# what docs/report.md explains, in its order: a selector, or a question of the first screen
MARKED = (
    *(".title", "#verdict", ".lede", ".rates"),
    *("How sure are we?", "What is missing?", "What next?", "What would twice the tasks change?", "What was tested?"),
    *("How far can you trust the judge?", "What got worse?", "What failed most?"),
    "main > nav",
)
WIDTH = 1180
NUMBERED = """
const [marked, left] = [arguments[0], document.querySelector(".verdict").getBoundingClientRect().left];
marked.forEach((name, i) => {
  const question = [...document.querySelectorAll("dt")].find(each => each.textContent.trim() === name);
  const box = (question || document.querySelector(name)).getBoundingClientRect();
  const badge = document.createElement("b");
  badge.textContent = i + 1;
  Object.assign(badge.style, {
    position: "absolute", left: `${left - 44}px`, top: `${box.top + scrollY}px`, width: "28px", height: "28px",
    borderRadius: "14px", background: "#a3123f", color: "white", font: "bold 16px/28px sans-serif", textAlign: "center",
  });
  document.body.append(badge);
});
"""


def first_screen(path: Path) -> Image.Image:
    """A picture of a report down to its list of sections, with a number at each part."""
    options = webdriver.ChromeOptions()
    for flag in ("--headless", "--no-sandbox", "--hide-scrollbars", f"--window-size={WIDTH},1400"):
        options.add_argument(flag)
    browser = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        browser.get(path.as_uri())
        browser.execute_script(NUMBERED, MARKED)
        height = browser.execute_script("return document.querySelector('main > nav').getBoundingClientRect().bottom")
        part = {"x": 0, "y": 0, "width": WIDTH, "height": height + 12, "scale": 1}
        shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": part})
        return Image.open(io.BytesIO(base64.b64decode(shot["data"])))
    finally:
        browser.quit()


conversations = list(ab.read_conversations(EXAMPLE / "*.jsonl"))
evidence = ab.assess(conversations, judge=ab.ReferenceJudge())
with tempfile.TemporaryDirectory() as folder:
    report = Path(folder, "report.html")
    ab.write_report(
        ab.estimate(ab.count_outcomes(evidence)),
        report,
        evidence=evidence,
        title="Support agent, release 2",
        note="Nightly run of 31 tasks, four attempts each.",
        date="2026-03-14",
    )
    first_screen(report).quantize(64, Image.Quantize.MAXCOVERAGE).save(
        Path(__file__).with_suffix(".png"), optimize=True
    )
