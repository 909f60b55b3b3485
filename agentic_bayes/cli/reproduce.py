"""The command reproduce: make results again and compare."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from typer import Argument, Exit, Typer

from agentic_bayes.cli.options import ToJson
from agentic_bayes.cli.output import say, say_json

commands = Typer()


@commands.command()
def reproduce(
    folder: Annotated[
        str, Argument(metavar="FOLDER", help="Results of estimate -o or demo -o, or a suite run (folder or id).")
    ],
    to: ToJson = None,
) -> None:
    """Recompute results from the data, settings and seed in a results folder, and report any differences.

    Exits with 0 if they are identical or differ only by rounding or Monte-Carlo error, otherwise with 1.
    """
    from agentic_bayes.errors import InvalidArgument
    from agentic_bayes.reports.reproduction import reproduce as make_again
    from agentic_bayes.suites.stores.run_index import find_run

    path = find_run(folder) or Path(folder)
    if not path.exists():
        raise InvalidArgument(
            f"{folder}: no such folder, and no run of this id in results; for a run elsewhere, give its folder"
        )
    outcome = make_again(path)
    if to == "json":
        say_json({"verdict": outcome.verdict, **asdict(outcome), "folder": str(outcome.folder)})
    else:
        say(str(outcome))
    if not outcome.reproduced:
        raise Exit(1)
