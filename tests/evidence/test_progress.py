"""How far a run has come, for people and for programs."""

import io

import pytest
from scripted import by_answer, conversation, turn, verdict

from agentic_bayes.evidence.assess import assess
from agentic_bayes.evidence.judge import LLMJudge
from agentic_bayes.evidence.progress import ProgressBar, ProgressState, progress_words


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
