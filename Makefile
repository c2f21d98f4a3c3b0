# The two commands to know: `make quickstart` and `make test`. PYTHON=... picks the interpreter.
# `make test-all` adds the slow tests: repeated kills, benchmarks, the other stack, real sets.

ifndef PYTHON
PYTHON := $(shell .ci/find_python 3.13 3.12 3.11)
endif
SUITABLE := import ensurepip, sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
VENV ?= .venv
BIN := $(VENV)/bin
CONSTRAINTS = constraints/python$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])').txt
PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS)
COMMA := ,
# The tests that run on the second stack, after the whole suite has run on the first.
SUBSET := tests/test_golden.py tests/ops tests/losses tests/optimizers tests/evaluation/test_metrics.py \
	tests/two_tower/test_similarity.py tests/training/test_checkpoints.py tests/test_plugins.py
# Each module in one process, in the order of tests/conftest.py. A process that dies ends the run:
# pytest-xdist 3.8 would start another one, and then wait for tests that it gives to none.
AT_ONCE := -n 2 --dist=loadscope --no-loadscope-reorder --max-worker-restart=0
# The libraries' own start-up messages; 0 shows them.
export TF_CPP_MIN_LOG_LEVEL ?= 3
# Two processes of tests keep two cores busy: BLAS threads would wait for each other.
test gate test-all subset: export OPENBLAS_NUM_THREADS ?= 1

PART ?= 0

.PHONY: help quickstart test gate test-all subset lint format site clean python

help:  ## Show the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

python:
	@test -n "$(PYTHON)" && $(PYTHON) -c '$(SUITABLE)' || { \
		echo "tf_smoothclir needs Python 3.11 to 3.13 with venv," \
		"but found PYTHON='$(PYTHON)' (empty: no suitable Python on the PATH)." \
		"Install one, or name it: make PYTHON=/path/to/python3.13" >&2; exit 1; }

define install
	@echo "Creating $(VENV) with $(PYTHON) and installing up to 2.7 GB: a minute or two ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(PIP_INSTALL) --editable '$(1)'
	@touch $(VENV)/.package $@
endef

$(VENV)/.package: setup.py $(wildcard constraints/*.txt) | python
	$(call install,.)

$(VENV)/.tests: setup.py $(wildcard constraints/*.txt) | python
	$(call install,.[test$(COMMA)docs])

quickstart: $(VENV)/.package  ## Install; train, evaluate, export and search on a small toy world
	@$(BIN)/smoothclir-quickstart --output_dir=runs/quickstart

test: $(VENV)/.tests  ## Run all tests but the slow ones, in about 8 minutes
	@$(BIN)/python -m pytest $(AT_ONCE) -m 'not slow' $(PYTEST_FLAGS)

gate: $(VENV)/.tests  ## Run the quick tests and part $(PART) of four of the slow ones
	@$(BIN)/python -m pytest $(AT_ONCE) --slow-part=$(PART) $(PYTEST_FLAGS)

test-all: $(VENV)/.tests  ## Run every test, slow ones included
	@$(BIN)/python -m pytest $(AT_ONCE) $(PYTEST_FLAGS)

subset: $(VENV)/.tests  ## Run the tests of the maths and one pass through all commands
	@$(BIN)/python -m pytest $(AT_ONCE) $(PYTEST_FLAGS) $(SUBSET)

lint: $(VENV)/.tests  ## Check style, formatting and the types of the public interface
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/python -m mypy

format: $(VENV)/.tests  ## Fix style and formatting
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

site: $(VENV)/.tests  ## Build the documentation as a site; a warning is an error
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict
	@echo "Open build/site/index.html, or, for the search box too, run: $(BIN)/python -m http.server --directory build/site"

clean:  ## Remove the environment; runs/ is kept
	rm -rf $(VENV)
