"""The reference, made from the package: every public name by the stage that defines it, and every command."""

import inspect
from operator import attrgetter
from types import FunctionType
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective, SphinxRole

import agentic_bayes as ab

NAMESPACES = ("errors", "gaussia", "judges", "metrics", "types")


def _stage(module: str) -> str:
    return module.removeprefix("agentic_bayes").lstrip(".").split(".")[0]


# public name, with its namespace → the stage that defines it: "estimate" → "estimation", "types.Gate" → "decisions"
HOME = {name: _stage(module) or name for name, module in ab._HOME.items() if name not in NAMESPACES}
HOME |= {
    f"{space}.{name}": space if space in ("gaussia", "judges") else _stage(getattr(getattr(ab, space), name).__module__)
    for space in NAMESPACES
    for name in getattr(ab, space).__all__
    if name not in HOME
}
# name as docstrings write it, without a namespace → public name
PUBLIC = {name.rpartition(".")[2]: name for name in HOME}
log = logging.getLogger(__name__)


class Public(SphinxRole):
    """`name` in a docstring: a link if it is a public name or a method of one, else just code."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """One node."""
        code = nodes.literal(self.rawtext, self.text)
        parts = self.text.removesuffix("()").removeprefix("ab.").split(".")
        if parts[0] in NAMESPACES:
            del parts[0]
        if not parts or parts[0] not in PUBLIC or not self.env.docname.startswith("docs/reference/"):
            return [code], []
        name = PUBLIC[parts[0]]
        member = inspect.getattr_static(attrgetter(name)(ab), parts[-1], None)
        if not isinstance(member, FunctionType | classmethod | staticmethod | property):
            parts = parts[:1]  # fields are described in the entry of their class
        target = ".".join(["agentic_bayes", name, *parts[1:]])
        link = addnodes.pending_xref("", code, refdomain="py", reftype="obj", reftarget=target, refwarn=False)
        return [link], []


class PublicNames(SphinxDirective):
    """Every public name that the given stages define: a table, then each with its documentation."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """What standard directives make of the names."""
        stages = self.arguments[0].split()
        names = [name for name, home in HOME.items() if home in stages]
        # functions are what a reader calls; classes are what comes back
        names.sort(key=lambda name: (inspect.isclass(attrgetter(name)(ab)), name.rpartition(".")[2].casefold()))
        lines = [".. currentmodule:: agentic_bayes", "", ".. autosummary::", "   :nosignatures:", ""]
        lines += [f"   {name}" for name in names]
        for name in names:
            lines += ["", *self._entry(name)]
        self.state.nested_parse(StringList(lines, source=self.env.docname), 0, holder := nodes.section())
        return holder.children

    def _entry(self, name: str) -> list[str]:
        value, path = attrgetter(name)(ab), f"agentic_bayes.{name}"
        if inspect.ismodule(value):
            return [f".. automodule:: {path}", "   :members:", "", ".. currentmodule:: agentic_bayes"]
        if inspect.isclass(value) and issubclass(value, Exception):
            return [f".. autoexception:: {path}", "   :show-inheritance:"]
        if inspect.isclass(value):
            return [f".. autoclass:: {path}", "   :members:"]
        return [f".. autofunction:: {path}"]


class Commands(SphinxDirective):
    """Every command of the command line, as `--help` describes it."""

    def run(self) -> list[nodes.Node]:
        """One section for each."""
        from typer.main import get_command

        from agentic_bayes.cli.app import app

        group: Any = get_command(app)
        return [self._section(name, group.commands[name]) for name in sorted(group.commands)]

    def _section(self, name: str, command: Any) -> nodes.section:
        section = nodes.section("", nodes.title("", name), ids=[nodes.make_id(name)], names=[name])
        section += nodes.paragraph("", command.help)
        for inner, part in getattr(command, "commands", {}).items():
            section += self._section(f"{name} {inner}", part)
        parameters = [parameter for parameter in command.params if parameter.name != "help"]
        if parameters:
            section += nodes.definition_list("", *map(self._entry, parameters))
        return section

    def _entry(self, parameter: Any) -> nodes.definition_list_item:
        argument = parameter.param_type_name == "argument"
        term = nodes.term()
        for number, name in enumerate(parameter.opts):
            term += [nodes.Text(", ")] * (number > 0) + [nodes.literal("", name.upper() if argument else name)]
        default = parameter.show_default if isinstance(parameter.show_default, str) else parameter.default
        stated = "" if default in (None, False, "") or callable(default) else f" Default: {default}."
        text = nodes.paragraph("", f"{parameter.help or ''}{' Required.' if parameter.required else stated}")
        return nodes.definition_list_item("", term, nodes.definition("", text))


def check_public_names(app: Sphinx, env: Any) -> None:
    """Every public name has an entry in the reference."""
    documented = {name for name, *_ in env.domains["py"].get_objects()}
    for name in HOME:
        if f"agentic_bayes.{name}" not in documented:
            log.warning("the public name %s is on no page of docs/reference", name)


def setup(app: Sphinx) -> None:
    """Add what is defined here."""
    app.add_role("public", Public())
    app.add_directive("public-names", PublicNames)
    app.add_directive("commands", Commands)
    app.connect("env-check-consistency", check_public_names)
