# Two commands matter: `make quickstart` and `make test`. PYTHON=... picks the interpreter.

CANDIDATES := python3.13 python3.12 python3.11 python3.10 python3.9 python3 python
SUITABLE := import ensurepip, sys; sys.exit(not (3, 9) <= sys.version_info[:2] <= (3, 13))
PYTHON ?= $(shell for python in $(CANDIDATES); do \
	$$python -c '$(SUITABLE)' >/dev/null 2>&1 && echo $$python && break; done)
BIN := .venv/bin
CONSTRAINTS = constraints/python$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])').txt
PIP_INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS)
# The libraries' own start-up messages; 0 shows them.
export TF_CPP_MIN_LOG_LEVEL ?= 3

.PHONY: help quickstart test lint format clean python

help:  ## Show the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

python:
	@test -n "$(PYTHON)" && $(PYTHON) -c '$(SUITABLE)' || { \
		echo "tf_smoothclir needs Python 3.9 to 3.13 with venv," \
		"and this is none: PYTHON=$(PYTHON) (empty: none of $(CANDIDATES) is)." \
		"Install one, or name it: make PYTHON=/path/to/python3.13" >&2; exit 1; }

.venv/.package: setup.py $(wildcard constraints/*.txt) | python
	@echo "Making .venv with $(PYTHON) and installing; about 2 GB, a minute or two ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(PIP_INSTALL) --editable .
	@touch $@

.venv/.tests: .venv/.package
	@$(PIP_INSTALL) --editable '.[test]'
	@touch $@

quickstart: .venv/.package  ## Train, evaluate, export and search the built-in toy world
	@$(BIN)/smoothclir-quickstart --output_dir=runs/quickstart

test: .venv/.tests  ## Run every test
	@$(BIN)/python -m pytest -n 2 --dist=loadscope $(PYTEST_FLAGS)

lint: .venv/.tests  ## Check style and formatting
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

format: .venv/.tests  ## Mend style and formatting
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

clean:  ## Remove the environment; runs/ stays
	rm -rf .venv
