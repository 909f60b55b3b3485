# Every target runs a command that also works without make. PYTHON= chooses the interpreter, VENV= the environment's folder.
PYTHON ?= python3
VENV   ?= .venv
EXTRAS ?= dev
TESTS  ?= not slow
FILES  ?=
CHECKS ?= lint site
ROUNDS ?= 5
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
# where it is set, every process compiles every module that it imports: half of the time of a short command
unexport PYTHONDONTWRITEBYTECODE
# one thread per worker for linear algebra: more would wait for each other, which takes up to three times the CPU time
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal

.PHONY: demo test tests lint fuzz calibrate bench peers site docs clean install

install: $(STAMP)

# Python 3.11 gets PyMC 5 and ArviZ 0.x, later versions get PyMC 6 and ArviZ 1.x. uv installs in half the time; where
# it finds no packages (it does not read pip's settings), pip does
$(STAMP): pyproject.toml $(wildcard constraints/*.txt)
	@echo "creating $(VENV) and installing the package (a minute or two the first time) ..."
	@rm -rf $(VENV)
	@$(PYTHON) -m venv $(VENV)
	@stack=$$($(PYTHON) -c 'import sys; print("pymc5" if sys.version_info < (3, 12) else "pymc6")'); \
	 install="install --quiet -c constraints/$$stack.txt"; what=".[$(EXTRAS)]"; \
	 { $(BIN)/python -m pip $$install uv && $(BIN)/uv pip $$install --python $(BIN)/python -e "$$what"; } 2>/dev/null \
	 || $(BIN)/python -m pip $$install -e "$$what"
	@touch $(STAMP)
	@echo "installed: $$($(BIN)/python --version)"

demo: $(STAMP)
	$(BIN)/agentic-bayes demo -o demo-results

# everything CI runs, on one stack
test: $(CHECKS) tests

tests: $(STAMP)
	$(PYTEST) -m "$(TESTS)" $(FILES)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# property tests with new random examples, ROUNDS times; `make test` always draws the same ones
fuzz: $(STAMP)
	for round in $$(seq $(ROUNDS)); do HYPOTHESIS_PROFILE=random $(PYTEST) -q -m "hypothesis and not slow" || exit 1; done

calibrate: $(STAMP)
	$(BIN)/python -m pytest -m slow
	$(BIN)/python benchmarks/calibrate.py

bench: $(STAMP)
	$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/engines.py
	$(BIN)/python benchmarks/judging.py
	$(BIN)/python benchmarks/trace_metrics.py
	$(BIN)/python benchmarks/suites.py
	$(BIN)/python benchmarks/executors.py
	$(BIN)/python benchmarks/tables.py
	$(BIN)/python benchmarks/report.py

# other packages on the same data, each installed into its own environment: docs/peers.md
peers: $(STAMP)
	$(BIN)/python benchmarks/peers.py

# the documentation as HTML in build/site; warnings and broken links are errors
site: $(STAMP)
	$(BIN)/python docs/extensions/modules.py --check
	$(BIN)/python -m sphinx -b html -c docs -d build/doctrees -W --keep-going -n -q . build/site

docs: site
	$(BIN)/python -m pytest tests/test_docs.py tests/test_site.py

clean:
	rm -rf .venv* build dist demo-results *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
