# Everything a newcomer needs. `make` alone prints this list.
.DEFAULT_GOAL := help
SHELL := /bin/bash

ENV     := .venv
PYTHON  := $(ENV)/bin/python
STAMP   := $(ENV)/.installed
INSTALL := $(PYTHON) -m pip install --quiet --disable-pip-version-check -c constraints.txt

# Two workers with one thread each: more threads than cores makes the tests slower.
WORKERS ?= 2
PYTEST  := OMP_NUM_THREADS=1 $(PYTHON) -m pytest -n $(WORKERS)

.PHONY: help
help:  ## print this list
	@awk -F ':.*##' '/^[a-z][a-z-]*:.*##/ { printf "make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# torch comes first and by its exact version: what follows then asks for no other build of it.
$(STAMP): pyproject.toml constraints.txt
	@base=$$(for python in python3 python3.11 python3.12 python3.13; do \
	  $$python -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; \
	done); \
	if [ -z "$$base" ]; then echo "bertie needs Python 3.11 or newer with its venv module" >&2; exit 1; fi; \
	if ! $(PYTHON) -m pip --version >/dev/null 2>&1; then $$base -m venv --clear $(ENV); fi
	$(INSTALL) torch==2.13.0 hatchling
	$(INSTALL) --no-build-isolation -e '.[test]'
	@$(INSTALL) --only-binary :all: nanotoken || echo "no nanotoken for this machine: word pieces will be slower, nothing else"
	@touch $@

.PHONY: quickstart
quickstart: $(STAMP)  ## install into .venv, then do a first job from start to finish; run again to continue
	$(ENV)/bin/bertie quickstart

.PHONY: check
check: $(STAMP)  ## lint, format and types
	$(ENV)/bin/ruff check
	$(ENV)/bin/ruff format --check
	$(ENV)/bin/mypy

.PHONY: test
test: check  ## check, then every test that is not slow
	$(PYTEST) -m "not slow"

.PHONY: test-slow
test-slow: $(STAMP)  ## the slow tests alone
	$(PYTEST) -m slow

.PHONY: faults
faults: $(STAMP)  ## try kills, full disks, changed bytes, hostile folders and misuses; writes docs/reliability.md
	$(PYTHON) -m tests.faults

.PHONY: bench
bench: $(STAMP)  ## measure bertie beside its peers (they get an environment of their own, .venv-peers)
	$(PYTHON) benchmarks/embed.py
	$(PYTHON) benchmarks/corpus.py
	$(PYTHON) benchmarks/pretrain.py
	$(PYTHON) benchmarks/finetune.py
	$(PYTHON) benchmarks/siamese.py

.PHONY: bench-results
bench-results: $(STAMP)  ## the latest figures of every kind of machine side by side, and what became slower
	$(PYTHON) benchmarks/results.py

.PHONY: experiment
experiment: $(STAMP)  ## run or go on with an experiment: make experiment NAME=ablations
	$(PYTHON) -m experiments $(or $(NAME),--list)

.PHONY: format
format: $(STAMP)  ## let ruff put the code into shape
	$(ENV)/bin/ruff check --fix
	$(ENV)/bin/ruff format

.PHONY: clean
clean:  ## remove caches and builds; .venv stays
	rm -rf build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -exec rm -rf {} +
