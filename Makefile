# Everything starts here. The targets need Python 3.11 or newer (PYTHON=... chooses which) and the network once:
# they make .venv (and .venv-oracles for the slow tier), and make them again only when pyproject.toml changes.

PYTHON ?= python3
JOBS ?= 2
VENV := .venv
PY := $(VENV)/bin/python
ORACLES := .venv-oracles
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help notebooks notebooks-refresh pictures catalogue demo test test-all test-slow lint format bench clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.installed ## run the demonstration: three gemms, from layouts to checked numbers
	$(PY) -m lowering.demo

test: $(VENV)/.installed-dev ## run the fast tests, then lint, types and import contracts
	$(PY) -m pytest -n $(JOBS) -m "not slow"
	@$(MAKE) --no-print-directory lint

test-all: test test-slow ## run every test: `make test`, then `make test-slow`

# Every property-based test again with three times the examples, the tests marked slow, and the oracles, whose
# absence is a failure here.
test-slow: $(VENV)/.installed-dev $(ORACLES)/.installed ## run the slow tests, thorough properties and oracles (up to an hour)
	TILELAYOUT_REQUIRE_ORACLES=1 TILELAYOUT_HYPOTHESIS_PROFILE=thorough \
	    $(PY) -m pytest -n $(JOBS) -m "slow or hypothesis or oracle"

lint: $(VENV)/.installed-dev ## run ruff, basedpyright and import-linter
	$(PY) -m ruff check
	$(PY) -m ruff format --check
	$(PY) -m basedpyright --pythonpath $(PY)
	$(VENV)/bin/lint-imports --no-logo

format: $(VENV)/.installed-dev ## format the code and fix what ruff can fix
	$(PY) -m ruff check --fix-only
	$(PY) -m ruff format

bench: $(VENV)/.installed $(ORACLES)/.installed ## run the measurements, beside TVM's where it has the same
	for name in algebra lowering startup compile; do $(PY) -m benchmarks.$$name || exit 1; done

# Needs neither a GPU nor the CUDA libraries, so that they aren't waited for. Jupyter shows stored pictures only of
# notebooks that are trusted, and refuses to run as root, who one is in a container, unless it is told so.
# JUPYTER_ARGS=--no-browser and the like are passed on.
notebooks: $(VENV)/.installed-notebooks ## open the first notebook in JupyterLab (no GPU is needed)
	@$(VENV)/bin/jupyter trust notebooks/*.ipynb >/dev/null
	$(VENV)/bin/jupyter lab --ServerApp.root_dir=. --LabApp.default_url=/lab/tree/notebooks/01_what_a_layout_is.ipynb \
	    $(if $(filter 0,$(shell id -u)),--allow-root) $(JUPYTER_ARGS)

notebooks-refresh: $(VENV)/.installed-dev ## execute the notebooks and store what they show
	$(PY) -m notebooks.refresh

pictures: $(VENV)/.installed-dev ## draw the guide's pictures anew (docs/pictures)
	$(PY) -m tilelayout.draw.gallery
	$(PY) -m property_tests.explore.screenshot docs/pictures/explorer.png

catalogue: $(VENV)/.installed ## print every matrix instruction, and write docs/reference/instructions.md
	$(PY) -m lowering.catalogue docs/reference/instructions.md

clean: ## remove what these targets made, environments included
	rm -rf $(VENV) $(ORACLES) build dist .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The pip that a new environment brings may not know dependency groups; 25.1 is the first that does.
define environment
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Python 3.11 or newer is needed, and $(PYTHON) is " + sys.version.split()[0] + ": try make PYTHON=python3.11")'
	@$(1)/bin/python -m pip --version >/dev/null 2>&1 || { echo "making $(1) with $(PYTHON)" && $(PYTHON) -m venv --clear $(1); }
	@$(1)/bin/python $(PIP_INSTALL) --upgrade "pip>=25.1"
endef

$(VENV)/.installed: pyproject.toml
	$(call environment,$(VENV))
	@echo "installing tilelayout and the CUDA libraries into $(VENV) (some minutes the first time)"
	@$(PY) $(PIP_INSTALL) --editable ".[cuda,cli]"
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	@echo "installing what tests and lint need into $(VENV)"
	@$(PY) $(PIP_INSTALL) --group test --group lint
	@touch $@

$(VENV)/.installed-notebooks: pyproject.toml
	$(call environment,$(VENV))
	@echo "installing tilelayout and JupyterLab into $(VENV) (a minute the first time)"
	@$(PY) $(PIP_INSTALL) --editable ".[notebooks]"
	@touch $@

$(ORACLES)/.installed: pyproject.toml
	$(call environment,$(ORACLES))
	@echo "installing the oracles into $(ORACLES) (some minutes the first time)"
	@$(ORACLES)/bin/python $(PIP_INSTALL) --group oracles
	@touch $@
