"""The rules of the package's structure, each a checker over syntax trees that is itself shown to catch a violation."""

import ast
import graphlib
import json
import os
import re
import subprocess
import sys
import textwrap
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

import agentic_bayes

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "agentic_bayes"
HEAVY = ("pymc", "nutpie", "arviz", "matplotlib", "langchain_core", "pandas", "xarray", "scipy")

# stage → what it may import beside itself, as the table in DESIGN says
GROUND = {"errors", "checks", "executors", "formatting", "redaction", "result_table", "numerics", "whole_files"}
UPSTREAM: dict[str, set[str]] = {"errors": set(), "redaction": set(), "executors": {"errors"}}
UPSTREAM |= {"checks": {"errors"}, "formatting": {"errors", "checks"}, "numerics": {"errors", "checks"}}
UPSTREAM |= {"result_table": {"formatting"}, "whole_files": {"checks"}}
UPSTREAM["records"] = GROUND
UPSTREAM["evidence"] = GROUND | {"records"}
UPSTREAM["outcomes"] = GROUND | {"evidence"}
UPSTREAM["estimation"] = GROUND | {"outcomes"}
UPSTREAM["judges"] = GROUND | {"records", "evidence", "outcomes"}
UPSTREAM["decisions"] = GROUND | {"outcomes", "estimation"}
UPSTREAM["reports"] = set(UPSTREAM)
UPSTREAM["top"] = set(UPSTREAM)
UPSTREAM["cli"] = set(UPSTREAM)
STAGE_OF = {name: name for name in UPSTREAM if name != "top"}
STAGE_OF |= {"__main__": "cli"}
STAGE_OF |= dict.fromkeys(("suites", "describe", "gaussia", "pytest_plugin", "metrics", "types"), "top")

# package (and what begins with its name) → modules that may import it
HOMES: dict[str, tuple[str, ...]] = {
    "pymc": ("estimation.engines.nuts",),
    "pytensor": ("estimation.engines.nuts",),
    "nutpie": ("estimation.engines.nuts",),
    "arviz": ("estimation.io",),
    "matplotlib": ("reports.plots",),
    "distributed": ("executors",),
    "langchain": ("evidence.llm", "records.formats.messages.langchain", "suites.agents"),
}
GENERATORS = {"default_rng", "Generator", "SeedSequence", "BitGenerator", "PCG64", "PCG64DXSM", "Philox"}


@dataclass(frozen=True)
class Source:
    """One file under inspection; `name` is its dotted name inside the package."""

    name: str
    tree: ast.Module

    @classmethod
    def read(cls, path: Path) -> "Source":
        """The file's tree, under its dotted name."""
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        return cls(".".join(part for part in parts if part != "__init__"), ast.parse(path.read_text("utf-8")))


SOURCES = [Source.read(path) for path in sorted(PACKAGE.rglob("*.py")) if "_examples" not in path.parts]
MODULES = {source.name for source in SOURCES}


def called(node: ast.Call) -> str:
    """The last part of the name of what is called; much faster than to write the expression out."""
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def walk(node: ast.AST, *, deferred: bool = False) -> Iterator[tuple[ast.AST, bool]]:
    """Every node, and whether it runs later than the import of its module (or only for a type checker)."""
    yield node, deferred
    for field, value in ast.iter_fields(node):
        body = field == "body" and (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))
        )
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from walk(child, deferred=deferred or body)


@cache
def nodes(source: Source) -> tuple[tuple[ast.AST, bool], ...]:
    """What `walk` gives for a file, once for all rules."""
    return tuple(walk(source.tree))


@cache
def imports(source: Source) -> tuple[tuple[str, bool, int], ...]:
    """Dotted name, whether the import is deferred, line. Names of our own come without "agentic_bayes."."""
    return tuple(named_imports(source))


def named_imports(source: Source) -> Iterator[tuple[str, bool, int]]:
    """The same, one by one."""
    for node, deferred in nodes(source):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = source.name.split(".")[: -node.level] if node.level else []
            base = ".".join([*(["agentic_bayes", *above] if node.level else []), *filter(None, [node.module])])
            names = [f"{base}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call) and called(node) in ("import_module", "__import__"):
            names = [a.value for a in node.args[:1] if isinstance(a, ast.Constant) and isinstance(a.value, str)]
        for name in names:
            root, _, inside = name.partition(".")
            if inside == "__version__":
                continue
            if root == "agentic_bayes":
                # a public name of the package stands for the module that defines it
                name = agentic_bayes._HOME.get(inside, "").removeprefix("agentic_bayes").lstrip(".") or inside
                while name and name not in MODULES and "." in name:
                    name = name.rpartition(".")[0]
                name = f"agentic_bayes.{name}"
            yield name, deferred, getattr(node, "lineno", 0)


def stage(name: str) -> str | None:
    return STAGE_OF.get(name.split(".")[0])


def upstream_only(source: Source) -> Iterator[str]:
    """A stage imports only what the table allows, also inside functions and for annotations."""
    own = stage(source.name)
    if not source.name:
        return  # the root names everything, for type checkers
    for name, _, line in imports(source):
        root, _, inside = name.partition(".")
        if root != "agentic_bayes":
            continue
        other = stage(inside)
        if other is None:
            yield f"{source.name}:{line} imports {name}, which belongs to no stage"
        elif own is None or other not in {own, *UPSTREAM[own]}:
            yield f"{source.name}:{line} ({own}) imports {name} ({other})"


def packages_at_home(source: Source) -> Iterator[str]:
    """A heavy package is imported only by the modules that are its home."""
    for name, _, line in imports(source):
        for package, homes in HOMES.items():
            if name.split(".")[0].startswith(package) and not any(
                source.name == home or source.name.startswith(f"{home}.") for home in homes
            ):
                yield f"{source.name}:{line} imports {name}; allowed in {', '.join(homes)}"


def heavy_on_first_use(source: Source) -> Iterator[str]:
    """A heavy package is never imported when its module is."""
    for name, deferred, line in imports(source):
        if not deferred and name.split(".")[0].startswith(tuple(HOMES) + HEAVY):
            yield f"{source.name}:{line} imports {name} when it is imported itself"


def well_named(source: Source) -> Iterator[str]:
    """No module is a drawer for the rest."""
    for part in source.name.split("."):
        if part.strip("_").rstrip("s") in ("util", "helper", "common", "misc", "manager"):
            yield f"{source.name} must say what it holds"


def private_names_at_home(source: Source) -> Iterator[str]:
    """A name that begins with an underscore is used only by the module that defines it."""
    for node, _ in nodes(source):
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                base = (node.module or "").removeprefix("agentic_bayes").lstrip(".")
                if (
                    alias.name.startswith("_")
                    and alias.name != "__version__"
                    and f"{base}.{alias.name}".lstrip(".") not in MODULES
                ):
                    yield f"{source.name}:{node.lineno} imports {alias.name}, which belongs to {node.module}"


def prints_in_cli_only(source: Source) -> Iterator[str]:
    """Only the command line prints."""
    for node, _ in nodes(source):
        if isinstance(node, ast.Name) and node.id == "print" and source.name.split(".")[0] != "cli":
            yield f"{source.name}:{node.lineno} prints"


def files_written_whole(source: Source) -> Iterator[str]:
    """A file is written by `replacing`, so that a full disk leaves no half of one and the error names it."""
    for node, _ in nodes(source):
        if not isinstance(node, ast.Call) or source.name == "whole_files":
            continue
        name, arguments = called(node), [ast.unparse(argument) for argument in node.args]
        modes = {text for text in arguments if re.fullmatch("'[wx]b?'", text)}
        if name in ("write_text", "write_bytes", "to_csv", "mkstemp") and not (name == "to_csv" and not arguments):
            yield f"{source.name}:{node.lineno} writes a file by {name}"
        if (name == "open" and modes) or (name in ("savefig", "to_netcdf") and "path" in arguments[0]):
            yield f"{source.name}:{node.lineno} writes a file by {name}"


def no_global_logging(source: Source) -> Iterator[str]:
    """Nobody configures logging for the whole program."""
    for node, _ in nodes(source):
        if "basicConfig" in (getattr(node, "attr", ""), getattr(node, "id", ""), getattr(node, "name", "")):
            yield f"{source.name}:{getattr(node, 'lineno', 0)} configures logging"


def no_plot_settings(source: Source) -> Iterator[str]:
    """Nobody changes matplotlib's settings, style or backend, which are the user's."""
    for node, _ in nodes(source):
        changed: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            changed = [target.value for target in node.targets if isinstance(target, ast.Subscript)]
        elif isinstance(node, ast.Call):
            changed = [node.func]
        for one in map(ast.unparse, changed):
            parts = one.split(".")
            settings = "rcParams" in parts and parts[-1] in ("rcParams", "update", "setdefault")
            if settings or parts[-1] in ("rc", "rc_context", "use", "switch_backend"):
                yield f"{source.name}:{node.lineno} changes matplotlib's settings ({one})"


def no_global_random(source: Source) -> Iterator[str]:
    """Randomness comes from generators that are made where they are used, never from global state."""
    for name, _, line in imports(source):
        if name.split(".")[0] == "random" or (
            name.startswith("numpy.random.") and name.split(".")[-1] not in GENERATORS
        ):
            yield f"{source.name}:{line} imports {name}"
    for node, deferred in nodes(source):
        if isinstance(node, ast.Attribute) and getattr(node.value, "attr", "") == "random":
            if ast.unparse(node.value) in ("np.random", "numpy.random") and node.attr not in GENERATORS:
                yield f"{source.name}:{node.lineno} uses the global generator ({node.attr})"
        elif isinstance(node, ast.Call) and not deferred and called(node) in GENERATORS:
            yield f"{source.name}:{node.lineno} makes a generator when it is imported"


def short_modules(source: Source) -> Iterator[str]:
    """A module has at most 600 lines."""
    length = max((node.end_lineno or 0 for node in source.tree.body), default=0)
    if length > 600:
        yield f"{source.name} has {length} lines"


# commands, simulations and the judge have many independent settings, each a keyword with a default
MANY_PARAMETERS = (
    "cli.",
    "reports.html.page.write_report",
    "decisions.plan.plan",
    "decisions.monitor.monitor",
    "evidence.llm.judge.LLMJudge",
)


def few_parameters(source: Source) -> Iterator[str]:
    """A public function takes at most 14 parameters; fields of results are not counted."""
    for name, function in public_functions(source.tree):
        arguments = function.args
        number = len([*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]) - ("." in name)
        if number > 14 and not f"{source.name}.{name}".startswith(MANY_PARAMETERS):
            yield f"{source.name}:{function.lineno} {name} takes {number} parameters"


def public_functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Functions and methods without an underscore, each with its name in the module."""
    for node in tree.body:
        for inner in node.body if isinstance(node, ast.ClassDef) else [node]:
            if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
                name = inner.name if inner is node else f"{node.name}.{inner.name}"
                if not re.search(r"(^|\.)_(?!_init__)", name):
                    yield name, inner


def exports(source: Source) -> set[str]:
    """The names in a module's `__all__`."""
    lists = [
        node.value
        for node in source.tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    return {element.value for value in lists for element in ast.walk(value) if isinstance(element, ast.Constant)}


def public_names(source: Source) -> set[str]:
    """Names of a module that the module, a namespace or the root exports."""
    names = exports(source) | {n for n, home in agentic_bayes._HOME.items() if home == f"agentic_bayes.{source.name}"}
    for other in SOURCES:
        for node in other.tree.body:
            for inner in node.body if isinstance(node, ast.If) else [node]:  # of lazy modules, for type checkers
                if isinstance(inner, ast.ImportFrom) and inner.module == f"agentic_bayes.{source.name}":
                    names |= {alias.name for alias in inner.names} & exports(other)
    return names


SECTION = re.compile(r"^(Parameters|Returns|Raises|Attributes)\n-{3,}$", re.MULTILINE)


def sections_for_public_names(source: Source) -> Iterator[str]:
    """Only docstrings of what is public have sections; of anything else a sentence says enough."""
    documented = [
        (top.name, node.lineno)
        for top in source.tree.body
        if isinstance(top, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        for node in ast.walk(top)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        if SECTION.search(ast.get_docstring(node) or "")
    ]
    public = public_names(source) if documented else set()
    for name, line in documented:
        if name not in public:
            yield f"{source.name}:{line} {name} is not public: one sentence"


def typed_where_lazy(source: Source) -> Iterator[str]:
    """A module that resolves names on first use hides that from type checkers, which would accept every name."""
    if any(isinstance(node, ast.FunctionDef) and node.name == "__getattr__" for node in source.tree.body):
        yield f"{source.name}: __getattr__ must stand under `if not TYPE_CHECKING`"


RULES: dict[Callable[[Source], Iterator[str]], list[tuple[str, str]]] = {
    upstream_only: [
        ("records.model", "from agentic_bayes.evidence.score import Score"),
        ("evidence.llm.judge", "def f():\n    from agentic_bayes.outcomes import count_outcomes"),
        ("numerics", "if TYPE_CHECKING:\n    import agentic_bayes.estimation.estimate"),
        ("outcomes.count", "from agentic_bayes.estimation.posterior import Counts"),
        ("outcomes.count", "from agentic_bayes import Conversation"),
        ("evidence.score", "from ..estimation import estimate"),
        ("decisions.gate", "from agentic_bayes import plot_posterior"),
        ("reports.tables", "from agentic_bayes.cli.output import say"),
        ("gaussia.agentic", "from agentic_bayes import cli"),
        ("formatting", "import_module('agentic_bayes.numerics')"),
        ("errors", "import agentic_bayes"),
        ("unknown_stage", "from agentic_bayes import errors"),
    ],
    packages_at_home: [
        ("estimation.estimate", "def f():\n    import pymc as pm"),
        ("estimation.methods.hierarchical", "if TYPE_CHECKING:\n    from nutpie import sample"),
        ("estimation.engines.nuts", "import arviz_stats"),
        ("cli", "def f():\n    import matplotlib.pyplot as plt"),
        ("reports.html", "def f():\n    from matplotlib.figure import Figure"),
        ("reports.plotsbeside", "if TYPE_CHECKING:\n    from matplotlib.axes import Axes"),
        ("evidence.assess", "from langchain_core.language_models import BaseChatModel"),
        ("gaussia.agentic", "def f():\n    from langchain_openai import ChatOpenAI"),
    ],
    heavy_on_first_use: [
        ("outcomes.dataset", "import xarray as xr"),
        ("numerics", "try:\n    from scipy.special import betaln\nexcept ImportError:\n    raise"),
        ("evidence.llm.judge", "class Judge:\n    from langchain_core import messages"),
    ],
    short_modules: [("decisions.plan", "\n" * 600 + "x = 1")],
    few_parameters: [
        ("decisions.gate", f"def gate(est, *, {', '.join(f'a{i}' for i in range(14))}): ..."),
        ("decisions.gate", f"class Gate:\n    def of(self, {', '.join(f'a{i}' for i in range(15))}): ..."),
    ],
    sections_for_public_names: [
        ("records.write", "def draft(path):\n    'Make.\\n\\nRaises\\n------\\nOSError'"),
        ("records.write", "class Draft:\n    def of(self):\n        'Make.\\n\\nReturns\\n-------\\nA'"),
    ],
    typed_where_lazy: [("judges", "def __getattr__(name):\n    return 1")],
    well_named: [("evidence.utils", ""), ("records._helpers", ""), ("estimation.common", "")],
    private_names_at_home: [
        ("estimation.engines.grid.exact", "from agentic_bayes.estimation.engines.grid.quadrature import _Grid"),
        ("cli", "def f():\n    from agentic_bayes.outcomes.count import count_outcomes, _cells"),
    ],
    prints_in_cli_only: [("outcomes", "def f():\n    print(1)"), ("reports.tables", "show = print")],
    files_written_whole: [
        ("cli.decide", "def f(junit):\n    junit.write_text('<xml/>')"),
        ("reports.tables", "def f(path):\n    with open(path, 'w') as file:\n        file.write('')"),
        ("reports.plots.save", "def f(figure, path):\n    figure.savefig(path, dpi=9)"),
    ],
    no_global_logging: [
        ("gaussia.agentic", "import logging\nlogging.basicConfig()"),
        ("cli", "from logging import basicConfig"),
    ],
    no_plot_settings: [
        ("reports.plots.style", "def f():\n    plt.rcParams['font.size'] = 14"),
        ("reports.plots.style", "def f():\n    mpl.rcParams.update({})"),
        ("reports.plots.style", "def f():\n    plt.style.use('ggplot')"),
        ("reports.plots.save", "def f():\n    matplotlib.use('Agg')"),
        ("reports.plots.save", "def f():\n    plt.switch_backend('agg')"),
    ],
    no_global_random: [
        ("estimation.engines.nuts", "def f():\n    np.random.seed(0)"),
        ("decisions.plan", "def f():\n    return np.random.normal()"),
        ("decisions.plan", "from random import random"),
        ("decisions.plan", "def f():\n    from numpy.random import seed"),
        ("estimation.posterior", "RNG = np.random.default_rng(0)"),
        ("estimation.posterior", "def draw(rng=np.random.default_rng(0)):\n    return rng"),
    ],
}
ALLOWED = [
    (
        "estimation.estimate",
        "from agentic_bayes import numerics\nfrom agentic_bayes.outcomes.dataset import check_outcomes",
    ),
    ("cli", "def f():\n    from agentic_bayes import estimate\n    print(estimate)"),
    ("estimation.engines.nuts", "from agentic_bayes.estimation.io import stacks"),
    ("reports.plots.forest", "def f():\n    import matplotlib.pyplot as plt\n    return plt.subplots()"),
    ("estimation.engines.nuts", "def fit():\n    import pymc, nutpie\n    return np.random.default_rng(0)"),
    ("evidence.llm.judge", "if TYPE_CHECKING:\n    from langchain_core.messages import BaseMessage"),
    ("records.formats.messages.langchain", "def read():\n    import langchain_core.messages"),
    ("outcomes.table", "from agentic_bayes.outcomes.dataset import dataset_from_counts\nimport numpy as np"),
    ("cli.plan", f"def plan({', '.join(f'a{i}' for i in range(30))}): ..."),
    ("records.read", "def read_conversations():\n    'Read.\\n\\nRaises\\n------\\nOSError'"),
    ("judges", "if not TYPE_CHECKING:\n    def __getattr__(name):\n        return 1"),
]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_the_package_keeps_every_rule(rule):
    """No module of the package breaks the rule."""
    assert [problem for source in SOURCES for problem in rule(source)] == []


@pytest.mark.parametrize(
    ("rule", "name", "text"), [(rule, *snippet) for rule, snippets in RULES.items() for snippet in snippets]
)
def test_every_rule_catches_a_violation(rule, name, text):
    """Code that breaks the rule is found, wherever it hides."""
    assert list(rule(Source(name, ast.parse(text))))


@pytest.mark.parametrize(("name", "text"), ALLOWED)
def test_no_rule_refuses_what_is_allowed(name, text):
    """Code that keeps the rules passes all of them."""
    assert [problem for rule in RULES for problem in rule(Source(name, ast.parse(text)))] == []


def test_every_module_belongs_to_a_stage():
    """Every module of the package has its place in the table; only the package itself has none."""
    assert {name for name in MODULES if stage(name) is None} == {""}


def crowded(modules: Iterable[str]) -> list[str]:
    """Folders of more than 15 modules, the `__init__` counted."""
    folders = Counter(name.rpartition(".")[0] for name in modules if name)
    return [f"{folder} has {number + 1} modules" for folder, number in folders.items() if number > 14]


def test_no_folder_is_crowded():
    """A folder holds at most 15 modules; one more is found."""
    folders = {name for name in MODULES if any(other.startswith(f"{name}.") for other in MODULES)}
    assert crowded(MODULES - folders) == []
    assert crowded(f"evidence.m{number}" for number in range(15)) == ["evidence has 16 modules"]
    assert crowded(f"evidence.m{number}" for number in range(14)) == []


def type_names(source: Source) -> Iterator[str]:
    """Names of the classes and type aliases that a module defines, without leading underscores."""
    for node in source.tree.body:
        if isinstance(node, ast.ClassDef):
            yield node.name.lstrip("_")
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            name = ast.unparse(node.target if isinstance(node, ast.AnnAssign) else node.targets[0]).lstrip("_")
            if re.fullmatch(r"[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*", name):  # an alias is written as classes are
                yield name


def shared_type_names(sources: Iterable[Source]) -> dict[str, list[str]]:
    """Type names that several modules define, with these modules."""
    homes: dict[str, list[str]] = {}
    for source in sources:
        for name in dict.fromkeys(type_names(source)):
            homes.setdefault(name, []).append(source.name)
    return {name: modules for name, modules in homes.items() if len(modules) > 1}


def test_a_type_name_means_one_thing():
    """No two modules define a type of the same name; a leading underscore does not make it another name."""
    assert shared_type_names(SOURCES) == {}
    twins = [Source("a", ast.parse("class Turn: ...")), Source("b", ast.parse("_Turn = Literal['x']"))]
    assert shared_type_names(twins) == {"Turn": ["a", "b"]}


def cycles(graph: dict[str, set[str]]) -> list[str]:
    try:
        list(graphlib.TopologicalSorter(graph).static_order())
    except graphlib.CycleError as error:
        return error.args[1]
    return []


def test_modules_import_each_other_without_cycles():
    """No chain of imports, also of those inside functions, leads back to where it began."""
    graph = {
        source.name: {name.partition(".")[2] for name, _, _ in imports(source) if name.startswith("agentic_bayes.")}
        for source in SOURCES
    }
    assert cycles(graph) == []
    assert cycles({"a": {"b"}, "b": {"a"}}) != []


def used(source: Source) -> Iterator[str]:
    """Packages that a module imports, or names in a string, as a file format's engine is."""
    for name, _, _ in imports(source):
        yield name.split(".")[0]
    for node, _ in nodes(source):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


IMPORTED_AS = {"PyYAML": "yaml", "google_re2": "re2", "python_dateutil": "dateutil", "python_jsonpath": "jsonpath"}


def test_every_dependency_is_used():
    """What is installed with the package is needed by some module of it, and nothing else is imported."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    names = [re.match(r"[\w-]+", entry)[0].replace("-", "_") for entry in project["dependencies"]]
    needed = {IMPORTED_AS.get(name, name) for name in names}
    found = {name for source in SOURCES for name in used(source)}
    assert needed - found == set()
    imported = {name.split(".")[0] for source in SOURCES for name, _, _ in imports(source)}
    # what comes with pydantic, PyMC and Jinja; what is there where its module is used (notebook, pytest, Parquet, Dask)
    others = {"agentic_bayes", "markupsafe", "pydantic_core", "pytensor", "IPython", "pytest", "pyarrow", "distributed"}
    assert imported - needed - set(sys.stdlib_module_names) - others == set()


# Tests of the tests

TEST_FILES = sorted((ROOT / "tests").rglob("*.py"))


def raises_without_match(tree: ast.AST) -> Iterator[int]:
    """Lines where an error is expected but not what it says."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and called(node) == "raises":
            given = [keyword.value for keyword in node.keywords if keyword.arg == "match"]
            if not given or ast.unparse(given[0]) in ("''", "None"):
                yield node.lineno


def silent_tests(tree: ast.AST) -> Iterator[str]:
    """Tests that do not say what they show."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and node.name.startswith("test_")
            and not ast.get_docstring(node)
        ):
            yield node.name


@pytest.mark.parametrize("path", TEST_FILES, ids=lambda path: path.relative_to(ROOT / "tests").as_posix())
def test_every_test_states_what_it_shows_and_what_an_error_says(path):
    """Every test has a docstring, and every `pytest.raises` a match."""
    tree = ast.parse(path.read_text("utf-8"))
    assert (list(raises_without_match(tree)), list(silent_tests(tree))) == ([], [])


@pytest.mark.parametrize("text", ["pytest.raises(ValueError)", "with raises(E, match=''): f()"])
def test_an_expected_error_without_match_is_caught(text):
    """An error that is expected without saying which is found."""
    assert list(raises_without_match(ast.parse(text))) == [1]
    assert not list(raises_without_match(ast.parse("pytest.raises(ValueError, match='must')")))


def test_a_test_without_docstring_is_caught():
    """A test without a sentence is found."""
    assert list(silent_tests(ast.parse("def test_it():\n    assert f()"))) == ["test_it"]
    assert list(silent_tests(ast.parse("def test_it():\n    'It holds.'\n    assert f()"))) == []


def test_test_files_have_names_of_their_own():
    """No two test files share a name, which pytest could not tell apart."""
    names = Counter(path.name for path in TEST_FILES if path.name != "conftest.py")
    assert [name for name, number in names.items() if number > 1] == []


# What is loaded when


def loaded(code: str, *arguments: str, cwd: Path = ROOT) -> set[str]:
    """The heavy packages that a fresh interpreter has loaded after running the code."""
    program = f"{code}\nimport json, sys\nprint(json.dumps([n for n in {HEAVY} if n in sys.modules]), file=sys.stderr)"
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=cwd,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        check=True,
    )
    return set(json.loads(done.stderr.splitlines()[-1]))


RUN = """
from agentic_bayes.cli.app import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
"""
RUN_ALL = f"""
import sys
first = list(sys.argv)
for method in ("hierarchical", "crossed", "conjugate", "frequentist"):
    sys.argv = [*first, method]
{textwrap.indent(RUN.strip(), "    ")}
"""


def test_importing_the_package_loads_nothing_heavy():
    """`import agentic_bayes` loads none of the heavy packages, nor does looking at its names."""
    assert loaded("import agentic_bayes\ndir(agentic_bayes)") == set()


def test_help_loads_nothing_heavy():
    """`agentic-bayes --help` loads none of the heavy packages."""
    assert loaded(RUN, "--help") == set()


def test_importing_estimate_loads_no_sampler():
    """`from agentic_bayes import estimate` loads neither PyMC nor anything else heavy."""
    assert loaded("from agentic_bayes import estimate") == set()


@pytest.mark.slow  # that the usual method loads none is in tests/cli/test_command_line.py
def test_an_estimate_from_a_table_loads_no_sampler(tmp_path):
    """Estimating from a table of counts by the engines of choice needs no sampler, no ArviZ and no pictures."""
    cells = "".join(f"{agent},{task},{c},4\n" for agent in ("v1", "v2") for task, c in (("a", 3), ("b", 1), ("c", 2)))
    (tmp_path / "counts.csv").write_text(f"agent,task,successes,trials\n{cells}")
    used = loaded(RUN_ALL, "estimate", "counts.csv", "--method", cwd=tmp_path)
    assert used & {"pymc", "nutpie", "arviz", "matplotlib", "langchain_core"} == set()


def test_the_check_of_loaded_packages_sees_a_heavy_import():
    """A heavy import is seen by the check."""
    assert loaded("import pandas") == {"pandas"}
