"""The HTML report in a browser: what a reader clicks, types, drags, prints and hears; and what must never run."""

import base64
import json
import os
import shutil
from pathlib import Path

import pandas as pd
import pytest
from fits import counts
from hostile_records import HOSTILE, conversations, hostile, judged

from agentic_bayes.estimation.estimate import estimate
from agentic_bayes.estimation.methods.options import Conjugate
from agentic_bayes.evidence.recorded import evidence_from_table
from agentic_bayes.formatting import format_interval, format_number
from agentic_bayes.outcomes.count import count_outcomes
from agentic_bayes.reports.html.page import write_report

ROOT = Path(__file__).resolve().parents[2]
AXE = ROOT / "tests" / "browser" / "node_modules" / "axe-core" / "axe.min.js"
PROGRAMS = {name: shutil.which(name) for name in ("chromium", "chromedriver")}
MISSING = [name for name, path in PROGRAMS.items() if path is None] + ([] if AXE.is_file() else ["axe-core"])
# in CI a missing browser is a failure of the first test that needs it
if MISSING and os.environ.get("AGENTIC_BAYES_BROWSER") != "required":
    pytest.skip(f"needs {', '.join(MISSING)} (see CONTRIBUTING.md)", allow_module_level=True)

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage"),
)
EMBEDDED = "return JSON.parse(document.getElementById('data-numbers').textContent)"
WIDTH = "return [document.documentElement.scrollWidth, innerWidth]"


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A headless Chromium that logs every request and every message of the console."""
    assert not MISSING, f"the browser tests need {', '.join(MISSING)}"
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = PROGRAMS["chromium"]
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(PROGRAMS["chromedriver"]))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def est():
    """60 tasks × 2 agents × 3 trials, more rows than a page of the table holds."""
    return estimate(count_outcomes(judged(conversations(60))))


@pytest.fixture(scope="module")
def page(est, tmp_path_factory):
    """Its report, with everything in it."""
    found = conversations(60)
    path = tmp_path_factory.mktemp("page") / "report.html"
    return write_report(est, path, evidence=judged(found), conversations=found)


@pytest.fixture(scope="module")
def hostile_page(tmp_path_factory):
    """A report of which every name and every word is an attack."""
    found = hostile()
    evidence = judged(found)
    path = tmp_path_factory.mktemp("hostile") / "<img src=x onerror=alert(1)>.html"
    made = estimate(count_outcomes(evidence, indicator="joint"))
    return write_report(made, path, evidence=evidence, conversations=found, source="<b>$(rm -rf .)`.jsonl")


@pytest.fixture(scope="module")
def graded_page(tmp_path_factory):
    """A report of scores on a scale and of recorded costs, of agents whose names are attacks."""
    agents = HOSTILE[0], HOSTILE[8]
    rows = [
        {"agent": agent, "task": f"task {i + 1}", "trial": t, "score": (5 * i + 3 * t + 2 * place) % 10 / 10}
        for place, agent in enumerate(agents)
        for i in range(5)
        for t in range(2)
    ]
    found = [
        one.model_copy(update={"metadata": {"cost": 1.0 + (one.assistant_id == agents[0]), "duration": 3.0}})
        for one in conversations(5, 2, agents)
    ]
    evidence = evidence_from_table(pd.DataFrame(rows))
    path = tmp_path_factory.mktemp("graded") / "report.html"
    return write_report(estimate(count_outcomes(evidence)), path, evidence=evidence, conversations=found)


@pytest.fixture
def opened(browser, page):
    """The report, freshly opened on a desktop, in the light."""
    return show(browser, page)


def show(browser, path, *, width=1280, scheme="light"):
    """Open a page at a width and in a colour scheme."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    wanted = {"prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce"}  # a page that glides is hard to click
    media = {"media": "", "features": [{"name": name, "value": value} for name, value in wanted.items()]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    for kind in ("browser", "performance"):
        browser.get_log(kind)
    browser.get(path.as_uri())
    return browser


def unfold(browser):
    """Open the sections that a telephone folds."""
    for button in css(browser, "h2 > button[aria-expanded=false]"):
        button.click()


def css(browser, selector):
    """All elements that a selector finds."""
    return browser.find_elements("css selector", selector)


def cells(browser, column):
    """The first line of each cell of a column of the table of tasks."""
    rows = css(browser, "#task-table tbody tr")
    return [row.find_elements("css selector", "th, td")[column].text.split("\n")[0] for row in rows]


def press(browser, *keys):
    """Type into whatever has the focus."""
    from selenium.webdriver.common.action_chains import ActionChains

    ActionChains(browser).send_keys(*keys).perform()


def focused(browser):
    """The element that has the focus."""
    return browser.switch_to.active_element


def complaints(browser):
    """What the console says, and what was requested beside the page itself."""
    said = [entry["message"] for entry in browser.get_log("browser")]
    asked = []
    for entry in browser.get_log("performance"):
        message = json.loads(entry["message"])["message"]
        if message["method"] == "Network.requestWillBeSent":
            asked.append(message["params"]["request"]["url"])
    return said, [url for url in asked if not url.startswith(("data:", "file:"))]


def violations(browser):
    """What axe-core objects to, with the first place of each."""
    browser.execute_script(AXE.read_text(encoding="utf-8"))
    found = browser.execute_async_script("axe.run().then((r) => arguments[arguments.length - 1](r.violations))")
    return [(one["id"], one["nodes"][0]["html"]) for one in found]


def background(browser):
    """The colour of the page."""
    return browser.execute_script("return getComputedStyle(document.body).backgroundColor")


def test_a_reader_moves_through_the_page_without_errors_or_requests(opened):
    """Sorting, filtering, turning pages, sliding, opening and closing leaves the console empty and asks nobody."""
    for selector in ("#next", "#task-table thead button", "#task-table tbody button", "#close", "#theme", "summary"):
        css(opened, selector)[0].click()
    assert complaints(opened) == ([], [])


@pytest.mark.parametrize(
    ("scheme", "width"),
    [
        ("light", 1280),
        ("dark", 360),
        pytest.param("light", 360, marks=pytest.mark.slow),
        pytest.param("dark", 1280, marks=pytest.mark.slow),
    ],
)
def test_axe_finds_nothing_to_object_to(browser, page, scheme, width):
    """No violation of accessibility rules, contrast among them, in light and dark, on a desk and on a telephone."""
    show(browser, page, width=width, scheme=scheme)
    assert violations(browser) == []
    unfold(browser)
    assert violations(browser) == []
    css(browser, "#task-table tbody button")[0].click()
    assert violations(browser) == []


@pytest.mark.parametrize("width", [1280, 360])
def test_the_page_is_never_wider_than_the_screen(browser, page, width):
    """Wide tables scroll within the page, as cards on a telephone, uncut; the page does not."""
    show(browser, page, width=width)
    unfold(browser)
    if width == 360:
        cut = (
            "return [...document.querySelectorAll('.cards td')].filter((c) => c.scrollWidth > c.clientWidth + 1).length"
        )
        assert browser.execute_script(cut) == 0
    scroll, inner = browser.execute_script(WIDTH)
    assert scroll <= inner == width


class TestTasks:
    """The table of tasks."""

    def test_it_sorts_by_a_column_and_says_so(self, opened, est):
        """A click sorts up, a second one down; aria-sort says which; numbers sort as numbers."""
        heads = css(opened, "#task-table thead th")
        assert [head.get_attribute("aria-sort") for head in heads] == ["ascending", *["none"] * (len(heads) - 1)]
        assert cells(opened, 0)[:3] == ["task 1", "task 2", "task 3"]
        heads[0].find_element("css selector", "button").click()
        assert cells(opened, 0)[:3] == ["task 60", "task 59", "task 58"]
        for direction, step in (("ascending", 1), ("descending", -1)):
            heads[1].find_element("css selector", "button").click()
            assert heads[1].get_attribute("aria-sort") == direction
            assert heads[0].get_attribute("aria-sort") == "none"
            shown = cells(opened, 1)
            assert shown == sorted(shown, key=lambda text: step * int(text[0]))
            assert len(set(shown)) > 1

    def test_it_shows_a_page_of_rows_at_a_time(self, opened):
        """50 rows, then the other 10; buttons that lead nowhere are off."""
        buttons = [css(opened, f"#{name}")[0] for name in ("previous", "next")]
        assert [len(cells(opened, 0)), *(button.is_enabled() for button in buttons)] == [50, False, True]
        buttons[1].click()
        assert [len(cells(opened, 0)), *(button.is_enabled() for button in buttons)] == [10, True, False]
        assert css(opened, "#page")[0].text == "51 to 60 of 60"
        css(opened, "#find")[0].send_keys("task 5")
        assert not any(button.is_displayed() for button in buttons)  # there is one page only

    def test_it_filters_by_name_and_by_outcome(self, opened, est):
        """What is typed narrows the rows, so does the choice of outcomes; the number found is announced."""
        css(opened, "#find")[0].send_keys("TASK 5")
        assert cells(opened, 0) == ["task 5", *(f"task {i}" for i in range(50, 60))]
        assert css(opened, "#count")[0].text == "11 of 60 tasks"
        assert css(opened, "#count")[0].get_attribute("role") == "status"
        css(opened, "#find")[0].clear()
        press(opened, " ")
        css(opened, "#only option[value=never]")[0].click()
        never = (est.counts.successes.sum(axis=0) == 0).sum()
        assert css(opened, "#count")[0].text == f"{never} of 60 tasks"

    def test_counts_and_estimates_are_the_summarys(self, opened, est):
        """A row shows c of n and the task's pass^1 with its interval as the summary has them."""
        frame = est.summary(columns="all", tasks=True)
        frame = frame[(frame["task"] == "task 3") & (frame["metric"] == "pass^1")]
        row = css(opened, "#task-table tbody tr")[2]
        shown = [cell.text.split("\n") for cell in row.find_elements("css selector", "td")[:2]]
        place = est.counts.tasks.index("task 3")
        for i, found in enumerate(frame.to_dict("records")):
            count = f"{est.counts.successes[i, place]} of {est.counts.trials[i, place]}"
            number = f"{format_number(found['mean'])} {format_interval(found['lower'], found['upper'])}"
            assert shown[i] == [count, number]


class TestSlider:
    """The slider of k."""

    def test_it_changes_the_numbers_beside_it(self, opened, est):
        """By the keyboard: the output, what a screen reader hears, the numbers and the line in the curves."""
        from selenium.webdriver.common.keys import Keys

        slider = css(opened, "#k")[0]
        line = css(opened, "svg.curves .cursor")[0]
        before = line.get_attribute("x1")
        slider.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
        assert (css(opened, "#k-value")[0].text, slider.get_attribute("aria-valuetext")) == ("3", "3")
        assert line.get_attribute("x1") != before
        frame = est.summary(columns="all")
        frame = frame[(frame["estimand"] == "population") & (frame["k"] == 3)]
        wanted = [
            [r["metric"], format_number(r["mean"]), format_interval(r["lower"], r["upper"])]
            for r in frame.to_dict("records")
        ]
        rows = css(opened, "#k-table tbody tr")
        assert [[cell.text for cell in row.find_elements("css selector", "td")[:3]] for row in rows] == wanted

    def test_beyond_the_trials_it_says_extrapolated(self, opened):
        """At a k that no task was tried so often, every number is marked."""
        from selenium.webdriver.common.keys import Keys

        css(opened, "#k")[0].send_keys(Keys.END)
        last = opened.execute_script(EMBEDDED)[-1]
        assert css(opened, "#k-value")[0].text == str(last[0]) == "5"
        doubts = [row.find_elements("css selector", "td")[4].text for row in css(opened, "#k-table tbody tr")]
        assert len(doubts) == 4
        assert all("extrapolated" in text for text in doubts)


class TestConversations:
    """A task is opened, read and closed."""

    def test_by_the_keyboard_alone(self, opened):
        """Enter opens a task, Tab stays inside, Escape closes it and gives the focus back."""
        from selenium.webdriver.common.keys import Keys

        button = css(opened, "#task-table tbody button")[1]
        opened.execute_script("arguments[0].focus()", button)
        press(opened, Keys.ENTER)
        reader = css(opened, "#reader")[0]
        assert reader.get_attribute("open") is not None
        assert focused(opened).text == "task 2"
        for _ in range(12):
            press(opened, Keys.TAB)
            inside = opened.execute_script("return document.activeElement.closest('#reader, body').id")
            assert inside == "reader" or focused(opened).tag_name == "body"  # the browser's own bar comes in between
        press(opened, Keys.ESCAPE)
        assert reader.get_attribute("open") is None
        assert focused(opened) == button

    def test_what_was_said_called_and_scored_can_be_read(self, opened):
        """The first attempt that did not pass is shown; another one is chosen by its button."""
        css(opened, "#task-table tbody button")[0].click()
        chosen = css(opened, ".trials button[aria-pressed=true]")
        assert [button.text for button in chosen] == ["3: failed"]
        said = css(opened, ".transcript")[0].text
        parts = ("What does task 1 cost?", "It costs 99 EUR.", "12 EUR", 'get_price(item="task 1")', '{"eur": 12}')
        assert all(part in said for part in parts)
        assert "answer: 0.000" in said
        assert "tools: 0.750" in said
        css(opened, ".trials button")[0].click()
        assert [one.text for one in css(opened, ".trials button[aria-pressed=true]")] == ["1: passed"]
        assert "It costs 12 EUR." in css(opened, ".transcript")[0].text
        css(opened, "#close")[0].click()


class TestColours:
    """Light and dark."""

    def test_the_page_follows_the_system(self, browser, page):
        """Dark where the reader's system is, light where it is not."""
        light = background(show(browser, page, scheme="light"))
        dark = background(show(browser, page, scheme="dark"))
        assert sum(map(int, light[4:-1].split(","))) > 600 > 300 > sum(map(int, dark[4:-1].split(",")))
        assert css(browser, "#theme")[0].text == "Light mode"

    def test_the_button_changes_it(self, opened):
        """The button goes there and back, and says where it leads."""
        first = background(opened)
        button = css(opened, "#theme")[0]
        assert button.text == "Dark mode"
        button.click()
        assert background(opened) != first
        assert button.text == "Light mode"
        button.click()
        assert (background(opened), button.text) == (first, "Dark mode")


def test_the_threshold_is_chosen_by_keyboard_and_announced(browser, graded_page):
    """An arrow moves to the next row, whose verdict a live region says; names stay text; axe has no objection."""
    from selenium.webdriver.common.keys import Keys

    show(browser, graded_page, width=360, scheme="dark")
    unfold(browser)
    said = css(browser, "#cut-value")[0]
    assert said.get_attribute("aria-live") == "polite"
    assert said.text.startswith("0.7 (this page) ")
    css(browser, "#cut")[0].send_keys(Keys.ARROW_RIGHT)
    chosen = css(browser, "#cut-table tr[data-chosen]")
    assert [row.get_attribute("data-verdict") for row in chosen] == [said.text.removeprefix("0.8 ")]
    assert HOSTILE[0] in said.text
    assert browser.execute_script("return window.hacked") is None
    assert violations(browser) == []
    assert complaints(browser) == ([], [])


def test_a_telephone_shows_the_answer_and_opens_the_rest_by_its_headings(browser, page):
    """At 360 px the sections are folded: a few screens; a heading opens and closes its own, and says which it is."""
    show(browser, page, width=360)
    assert browser.execute_script("return document.documentElement.scrollHeight") < 6 * 900
    assert not css(browser, "nav")[0].is_displayed()
    heads = css(browser, "main h2 > button")
    assert [head.get_attribute("aria-expanded") for head in heads] == ["false"] * len(heads)
    table = css(browser, "#task-table")[0]
    assert not table.is_displayed()
    head = next(head for head in heads if head.text == "Tasks")
    head.click()
    assert (head.get_attribute("aria-expanded"), table.is_displayed()) == ("true", True)
    assert len(cells(browser, 0)) == 20
    assert max(row.size["height"] for row in css(browser, "#task-table tbody tr")) < 160
    head.click()
    assert not table.is_displayed()
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": []})
    size = {"width": 800, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    assert table.is_displayed()  # paper shows what a telephone folds


def test_a_page_of_many_agents_fits_on_paper_and_on_a_telephone(browser, tmp_path):
    """On a screen the tasks begin within six screens, the hardest before them; on a telephone an agent of the ranking
    takes three lines; in print the long tables are left out by name.
    """
    cells = {f"agent-{i}": [(i, 12), (12 - i % 3, 12)] for i in range(13)}
    est = estimate(counts(cells), Conjugate(pool_tasks=True), k=1)
    path = write_report(est, tmp_path / "many.html")
    show(browser, path, width=360)
    rows = css(browser, ".ranking tbody tr")
    assert len(rows) == 13
    assert all(row.size["height"] < 100 for row in rows)
    assert violations(browser) == []
    show(browser, path)
    assert css(browser, "#task-table")[0].location["y"] < 6 * 800
    assert css(browser, ".worst-tasks")[0].is_displayed()
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": []})
    left_out = css(browser, ".many .bulky:not([open]) > summary")
    assert "Every pair of agents" in [one.text for one in left_out if one.is_displayed()]
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert css(browser, ".many .bulky:not([open]) > summary") == left_out


def test_print_shows_what_is_folded_and_says_what_is_left_out(browser, page):
    """On paper the folded parts are open, examples and buttons are gone; it says which rows and attempts it lacks."""
    show(browser, page, scheme="dark")
    pdf = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {})["data"])
    assert pdf.startswith(b"%PDF")
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": []})
    note = css(browser, ".print-only")[0].text
    assert "rows 1 to 50 of 60, of 60 tasks; the others are left out." in note
    assert "360 attempts can be opened in the file and are left out here." in note
    assert sum(map(int, background(browser)[4:-1].split(","))) > 600
    assert not any(one.is_displayed() for one in css(browser, "nav, #theme, #filters, .pages, #reader"))
    # browsers leave buttons out of a header that they repeat on further pages: it has text instead
    assert css(browser, "#task-table thead th")[0].get_attribute("data-title") == "task"
    assert not any(button.is_displayed() for button in css(browser, "#task-table thead button"))
    folded = css(browser, "details td")
    assert folded
    assert all(cell.size["height"] > 0 for cell in folded)
    kinds = css(browser, ".failures summary")
    assert kinds
    assert all(kind.is_displayed() for kind in kinds)
    assert not any(example.is_displayed() for example in css(browser, ".failures .examples"))


def test_the_skip_link_leads_to_the_verdict(opened):
    """The first Tab of a page shows a link past the head of the page."""
    from selenium.webdriver.common.keys import Keys

    press(opened, Keys.TAB)
    assert focused(opened).text == "Skip to the verdict"
    press(opened, Keys.ENTER)
    assert focused(opened).get_attribute("id") == "main"


class TestHostileText:
    """Whatever agents, users, tools and files are called and say, it stays text."""

    @pytest.mark.parametrize("width", [pytest.param(1280, marks=pytest.mark.slow), 360])
    def test_nothing_runs_and_the_layout_holds(self, browser, hostile_page, width):
        """Every task is opened: no script ran, no element was added, nothing is wider than the screen."""
        show(browser, hostile_page, width=width)
        for button in css(browser, "#task-table tbody button"):
            browser.execute_script("arguments[0].click()", button)
            for attempt in css(browser, ".trials button"):
                browser.execute_script("arguments[0].click()", attempt)
                wide = "const t = document.querySelector('.transcript'); return t.scrollWidth <= t.clientWidth"
                assert browser.execute_script(wide)
            browser.execute_script("document.getElementById('reader').close()")
        assert browser.execute_script("return window.hacked") is None
        assert css(browser, "img, iframe, object, script:not([type='application/json']):not(:last-of-type)") == []
        links = [link.get_dom_attribute("href") for link in css(browser, "a")]
        assert all(href.startswith("#") for href in links)
        scroll, inner = browser.execute_script(WIDTH)
        assert scroll <= inner == width
        assert complaints(browser) == ([], [])

    def test_what_cannot_be_seen_is_shown(self, browser, hostile_page):
        """Direction overrides, zero-width and control characters appear as their code points."""
        show(browser, hostile_page)
        button = next(one for one in css(browser, "#task-table tbody button") if "gnp.exe" in one.text)
        marks = {mark.text for mark in button.find_elements("css selector", ".cp")}
        assert marks == {"U+202E", "U+202C", "U+2066", "U+2069", "U+200B", "U+200D", "U+FEFF"}
        browser.execute_script("arguments[0].click()", button)
        said = css(browser, ".said.user p")[0]
        assert "a\n" not in said.text
        assert said.get_attribute("dir") == "auto"
        assert {mark.text for mark in said.find_elements("css selector", ".cp")} == marks
        unseen = (
            "return [...document.body.innerText].filter((c) => /[\\u200b-\\u200f\\u202a-\\u202e\\0]/.test(c)).length"
        )
        assert browser.execute_script(unseen) == 0
