"""How far a run has come, for people and for programs."""

import io
import sys

import pytest
from scripted import by_answer, conversation, turn, verdict

from agentic_bayes.evidence.assess import assess
from agentic_bayes.evidence.llm.judge import LLMJudge
from agentic_bayes.evidence.progress import ProgressBar, ProgressState, progress_words
from agentic_bayes.evidence.reference.judge import ReferenceJudge


class Terminal(io.StringIO):
    """A file that says that it is a terminal."""

    def isatty(self):
        """Yes."""
        return True


class Heard:
    """Keeps every state."""

    def __init__(self):
        self.states = []

    def __call__(self, done, total):
        """Never."""
        raise AssertionError("the detailed way is taken where there is one")

    def report(self, state):
        """Keep it."""
        self.states.append(state)


def test_a_detailed_progress_hears_what_could_not_be_scored():
    """Done, in all, unscored and cost are told after every interaction."""
    model = by_answer({"8": verdict(1.0), "?": "no verdict"})
    heard = Heard()
    conversations = [conversation(turn(answer=answer), session=answer, task_id=answer) for answer in ("8", "?")]
    assess(conversations, judge=LLMJudge(model, attempts=1), concurrency=1, progress=heard)
    assert heard.states == [ProgressState(1, 2, 0, 0.0), ProgressState(2, 2, 1, 0.0)]


@pytest.mark.parametrize(
    ("state", "seconds", "words"),
    [
        (ProgressState(0, None, 0, 0.0), 0, "0"),
        (ProgressState(120, 500, 3, 0.416), 60, "120 of 500, 3 unscored, cost 0.42, 0:03:10 left"),
        (ProgressState(500, 500, 0, 0.0), 60, "500 of 500"),
        (ProgressState(1, 20000, 0, 0.0), 2, "1 of 20,000, 11:06:38 left"),
    ],
)
def test_words(state, seconds, words):
    """Only what there is to say is said."""
    assert progress_words(state, seconds) == words


def test_a_bar_is_drawn_in_a_terminal_and_nowhere_else():
    """Nothing is written to a pipe or a file."""
    terminal, pipe = Terminal(), io.StringIO()
    for file in (terminal, pipe):
        with ProgressBar(file=file) as bar:
            bar.report(ProgressState(3, 10, 1, 0.0))
            bar(4, 10)
    assert "4 of 10" in terminal.getvalue()
    assert pipe.getvalue() == ""


def test_a_long_run_shows_its_progress_unless_that_is_not_wanted(monkeypatch):
    """After two seconds, in a terminal; False, or a run that is soon over, shows nothing."""
    drawn = {}
    for name, late, progress in (("long", -1, None), ("short", 60, None), ("unwanted", -1, False)):
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        monkeypatch.setattr("agentic_bayes.evidence.progress.LATE", late)
        assess([conversation(turn(), task_id="t")], judge=ReferenceJudge(), progress=progress)
        drawn[name] = "1 of 1" in terminal.getvalue()
    assert drawn == {"long": True, "short": False, "unwanted": False}
    monkeypatch.setattr(sys, "stderr", None)  # as in a program without a console
    monkeypatch.setattr("agentic_bayes.evidence.progress.LATE", -1)
    assert len(assess([conversation(turn(), task_id="t")], judge=ReferenceJudge())) == 1


class Notebook:
    """Stands for IPython in a kernel; keeps what is displayed."""

    def __init__(self, kernel=True):
        self.shell = type("Shell", (), {"kernel": None} if kernel else {})()
        self.shown = []

    def get_ipython(self):
        """The shell."""
        return self.shell

    def display(self, data, *, raw, display_id):
        """Keep it; what comes later comes to `update`."""
        assert raw
        assert display_id
        self.shown.append(data)
        return self

    def update(self, data, *, raw):
        """Keep it, too."""
        assert raw
        self.shown.append(data)


def test_a_notebook_shows_one_line_that_is_replaced(monkeypatch, capsys):
    """A kernel gets states of one output, not too many, and what is told last stays; nothing else is written."""
    fake = Notebook()
    monkeypatch.setitem(sys.modules, "IPython", fake)
    monkeypatch.setitem(sys.modules, "IPython.display", fake)
    with ProgressBar("<i>judging</i>") as bar:
        for done in range(1, 501):
            bar.report(ProgressState(done, 500, 1, 0.0))
    assert fake.shown[0]["text/plain"] == "<i>judging</i>: begun"
    assert '<progress value="1" max="500"></progress> &lt;i&gt;judging' in fake.shown[1]["text/html"]
    assert fake.shown[-1]["text/plain"] == "<i>judging</i>: 500 of 500, 1 unscored"
    assert "<progress" not in fake.shown[-1]["text/html"]
    assert len(fake.shown) < 50
    assert capsys.readouterr() == ("", "")


def test_an_interactive_shell_is_no_notebook(monkeypatch):
    """IPython in a terminal has no kernel that could show more than text."""
    fake, terminal = Notebook(kernel=False), Terminal()
    monkeypatch.setitem(sys.modules, "IPython", fake)
    monkeypatch.setattr(sys, "stderr", terminal)
    with ProgressBar() as bar:
        bar(4, 10)
    assert fake.shown == []
    assert "4 of 10" in terminal.getvalue()
