"""What commands print: text and tables for people, or markdown, html, json or latex."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import traceback
from collections.abc import Iterable, Iterator
from shutil import get_terminal_size
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal, assert_never

from typer import Exit

from agentic_bayes.errors import AgenticBayesError

if TYPE_CHECKING:
    from agentic_bayes.estimation.estimate import Estimate
    from agentic_bayes.redaction import Secrets
    from agentic_bayes.result_table import Table

OutputFormat = Literal["markdown", "html", "json", "latex"]
WIDTH = 80  # columns of the screen that text takes
NARROWEST = 40  # with less, every line would be a word


def say(text: str) -> None:
    """Print text in lines that fit 80 columns, or the terminal if it has fewer."""
    from agentic_bayes.formatting import plain_text

    screen = get_terminal_size((WIDTH, 24)).columns if sys.stdout.isatty() else WIDTH
    width = min(max(screen, NARROWEST), WIDTH)
    for line in plain_text(text).split("\n"):
        indent = line[: len(line) - len(line.lstrip())]
        print(fill(line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False))


def complain(text: str) -> None:
    """Print to standard error; control characters that a file may hold are written out."""
    from agentic_bayes.formatting import plain_text

    print(plain_text(text), file=sys.stderr)


class _HidingStream:
    """A stream that writes names in place of secrets, and is otherwise the stream that it writes to."""

    def __init__(self, stream: Any, secrets: Secrets) -> None:
        self._stream, self._secrets = stream, secrets

    def write(self, text: str) -> int:
        """Write a piece of text."""
        self._stream.write(self._secrets.in_text(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write pieces of text."""
        self.write("".join(lines))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextlib.contextmanager
def printing_without(secrets: Secrets) -> Iterator[None]:
    """Keep secrets out of whatever is printed meanwhile, out of errors and out of the traceback of a crash."""
    streams: list[Any] = [_HidingStream(stream, secrets) for stream in (sys.stdout, sys.stderr)]
    with contextlib.redirect_stdout(streams[0]), contextlib.redirect_stderr(streams[1]):
        try:
            yield
        except AgenticBayesError as error:
            if secrets.in_text(str(error)) == str(error):
                raise
            complain(f"error: {error}")
            raise Exit(2) from None
        except (OSError, Exit):
            raise
        except Exception:
            if not secrets:
                raise
            traceback.print_exc()
            raise Exit(1) from None


@contextlib.contextmanager
def printing_without_keys() -> Iterator[None]:
    """Keep the keys of the environment, which models read by themselves, out of whatever is printed meanwhile."""
    from agentic_bayes.redaction import Secrets, keys_in

    with printing_without(Secrets(keys_in(os.environ))):
        yield


def say_json(value: Any) -> None:
    """Print strict JSON; an undefined number is null."""
    from agentic_bayes.formatting import json_ready

    print(json.dumps(json_ready(value), indent=2, allow_nan=False))


def answer(result: Any, text: str, to: OutputFormat | None, *, est: Estimate | None = None, **more: Any) -> None:
    """Print a result that is one table: its text, or its JSON with more, or its table in a markup language."""
    if to == "json":
        say_json(result.to_dict() | more)
    elif to is None:
        say(text)
    else:
        show(result.table(), to=to, est=est, sentence=text)


def show(
    *tables: Table,
    lines: Iterable[str] = (),
    to: OutputFormat | None = None,
    est: Estimate | None = None,
    sentence: str = "",
) -> None:
    """Print tables, and lines below them, as plain text that fits the terminal, or tables in a markup language.

    Markdown of an estimate is a comment: a sentence, tables, and the estimate's settings folded below them.
    """
    from rich.console import Console

    from agentic_bayes.reports.terminal import print_table

    if to == "markdown" and est is not None:
        from agentic_bayes.reports.comment import comment

        print(comment(est, tables, sentence=sentence))
        return
    if to is not None and to != "json":
        print("\n\n".join(_marked_up(table, to) for table in tables))
        return
    asked = os.environ.get("COLUMNS", "")
    width = None if sys.stdout.isatty() else int(asked) if asked.isdecimal() and int(asked) >= NARROWEST else WIDTH
    console = Console(highlight=False, width=width)
    for table in tables:
        print_table(console, table)
    if text := "\n".join(lines):
        say(text)


def _marked_up(table: Table, to: Literal["markdown", "html", "latex"]) -> str:
    match to:
        case "markdown":
            return table.to_markdown()
        case "html":
            return table.to_html()
        case "latex":
            return table.to_latex()
        case _:
            assert_never(to)
