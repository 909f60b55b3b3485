"""The command describe: any file → what it looks like, and how it is read."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Typer

from agentic_bayes.cli import options as opt
from agentic_bayes.cli.output import say, say_json, show

commands = Typer()


@commands.command()
def describe(
    files: Annotated[list[str], Argument(metavar="FILE", help="Any file, or files or a folder of conversations.")],
    *,
    to: opt.To = None,
) -> None:
    """Say what a file looks like, what of it would be agent, task, trial and result, and how to read it so."""
    from agentic_bayes.describe.files import describe as described

    found = described(files)
    if to == "json":
        say_json(found.to_dict())
        return
    show(*found.tables(), lines=() if to else found.lines(), to=to)
    if to is not None:
        return
    for title, lines in (("in a shell:", found.commands), ("in Python:", found.code)):
        if lines:
            say(f"\n{title}")
            print("\n".join(f"  {line}" for line in lines))  # unbroken, to be copied
