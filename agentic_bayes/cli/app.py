"""The command line's table of commands; a command's module is imported when the command is used."""

from __future__ import annotations

import atexit
import gc
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

from agentic_bayes.cli.exits import EXIT_CODES, errors_end_the_program

__all__ = ["app", "main"]

# command → module of this package, in the order in which --help lists them
MODULES = {
    "demo": "demo",
    "init": "suite",
    "validate": "records",
    "describe": "records",
    "convert": "records",
    "show": "records",
    "assess": "assess",
    "estimate": "estimate",
    "compare": "decide",
    "rank": "decide",
    "gate": "decide",
    "plan": "plan",
    "monitor": "plan",
    "report": "report",
    "run": "suite",
    "list": "suite",
    "reproduce": "reproduce",
    "cache": "cache",
}


@cache
def commands_of(module: str) -> dict[str, Any]:
    """The commands that a module of this package defines."""
    return dict(get_group(import_module(f"agentic_bayes.cli.{module}").commands).commands)


class LazyCommands(Mapping[str, Any]):
    """The commands by name; looking one up imports its module."""

    def __getitem__(self, name: str) -> Any:
        return commands_of(MODULES[name])[name]

    def __iter__(self) -> Iterator[str]:
        return iter(MODULES)

    def __len__(self) -> int:
        return len(MODULES)


class MainGroup(TyperGroup):
    """`agentic-bayes` itself."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes | {"commands": LazyCommands()})

    def list_commands(self, ctx: Any) -> list[str]:
        """Names of the commands, without importing any of them."""
        return list(self.commands)

    def invoke(self, ctx: Any) -> Any:
        """Run a command; a wrong value is refused without the words that pydantic puts before the reason."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            raise


app = typer.Typer(
    cls=MainGroup,
    help="Estimate how reliable an AI agent is (pass@k and pass^k with credible intervals), and decide whether a new "
    "version is better.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        from agentic_bayes import __version__

        print(f"agentic-bayes {__version__}")
        raise typer.Exit


@app.callback()
def _start(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None: ...


def main() -> None:
    """Run the command line."""
    # Looking for garbage costs a short command a fifth of its time, as imports make half a million objects that stay:
    # look less often, and not at exit, where their memory is given back anyway
    gc.set_threshold(20_000)
    atexit.register(gc.freeze)
    with errors_end_the_program():
        app(prog_name="agentic-bayes")
