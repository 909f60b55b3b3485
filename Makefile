# Thin: every target calls a command that works without make. PYTHON= selects an interpreter, VENV= where it lives.
PYTHON ?= python3
VENV   ?= .venv
TESTS  ?= not slow
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')

.PHONY: demo test lint bench site docs calibrate clean install

install: $(STAMP)

# Python 3.11 has PyMC 5 and ArviZ 0.x, later versions have PyMC 6 and ArviZ 1.x
$(STAMP): pyproject.toml $(wildcard constraints/*.txt)
	@echo "creating $(VENV) and installing the package (a minute or two the first time) ..."
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV)
	@stack=$$($(PYTHON) -c 'import sys; print("pymc5" if sys.version_info < (3, 12) else "pymc6")'); \
	 $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints/$$stack.txt -e '.[dev]'
	@touch $(STAMP)
	@echo "installed: $$($(BIN)/python --version)"

demo: $(STAMP)
	$(BIN)/agentic-bayes demo -o demo-results

test: lint
	$(BIN)/python -m pytest -m "$(TESTS)" -n auto --dist loadfile

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

calibrate: $(STAMP)
	$(BIN)/python -m pytest -m slow
	$(BIN)/python benchmarks/calibrate.py

bench: $(STAMP)
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/engines.py
	$(BIN)/python benchmarks/judging.py
	$(BIN)/python benchmarks/trace_metrics.py
	$(BIN)/python benchmarks/suites.py
	$(BIN)/python benchmarks/report.py

# the pages as HTML, in build/site; a link or a name that leads nowhere is an error
site: $(STAMP)
	$(BIN)/python -m sphinx -b html -c docs -d build/doctrees -W --keep-going -n -q . build/site

docs: site
	$(BIN)/python -m pytest tests/test_docs.py tests/test_site.py

clean:
	rm -rf .venv* build dist demo-results *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
