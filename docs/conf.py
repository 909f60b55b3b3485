"""Settings of the site, which `make site` builds from docs/ and notebooks/, where they are, without a network.

The root of the sources is the project's, so that a link such as `../notebooks/01_quickstart.ipynb` leads to the same
page on the site and where the files are read.
"""

import builtins
import sys
from pathlib import Path
from typing import Any

import agentic_bayes as ab

sys.path.insert(0, str(Path(__file__).parent / "extensions"))

project = "agentic-bayes"
version = release = ab.__version__
author = "the authors of agentic-bayes"
copyright = "the authors of agentic-bayes; Apache-2.0"

root_doc = "docs/index"
include_patterns = ["docs/*.md", "docs/reference/*.md", "notebooks/*.ipynb", "CHANGELOG.md", "CONTRIBUTING.md"]
exclude_patterns = [".*", "build", "agentic_bayes", "benchmarks", "constraints", "examples", "tests"]
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "numpydoc", "reference", "pictures"]
nitpicky = True
smartquotes = False  # two hyphens begin an option, they are no dash
nitpick_ignore = [("py:class", name) for name in dir(builtins)]  # bases of our errors

# pages
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 3
suppress_warnings = ["myst.header"]  # notebooks begin sections where they like
nb_execution_mode = "off"  # their outputs are committed; tests/test_notebooks.py checks them
nb_ipywidgets_js: dict[str, Any] = {}  # would be fetched from a network

# docstrings
default_role = "public"
autosummary_generate = False
autodoc_typehints = "none"  # docstrings name types in words
numpydoc_show_class_members = False
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True  # `ToolRubric()`, not all that is in it
autodoc_default_options = {"exclude-members": "model_config"}  # pydantic's own
python_use_unqualified_type_names = True
add_module_names = False
toc_object_entries_show_parents = "hide"

# looks
html_theme = "furo"
html_title = "agentic-bayes"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_extra_path = ["static/index.html"]  # the front page is docs/index.html
html_show_sphinx = False
