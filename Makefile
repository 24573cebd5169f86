# heedful: `make demo` and `make test` go from a bare checkout to the end; `make` alone lists the rest.

PYTHON3 ?= python3
PYTHON  ?= .venv/bin/python
JOBS    ?= 2
ARGS    ?=

VENV := .venv/bin
SETUP := .venv/.set-up
DOCS_SETUP := .venv/.docs-set-up
DEMO := runs/reverse

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint format types prove golden test-gpu docs pictures wheel lock clean clean-demo

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  PYTHON3=$(PYTHON3)  makes .venv (3.11 or newer)    JOBS=$(JOBS)  test processes    ARGS=  more for pytest"

setup: $(SETUP) ## make .venv, with all that running and testing need

$(VENV)/python:
	@version=$$($(PYTHON3) -c 'import sys; print("%d.%d" % sys.version_info[:2]); sys.exit(sys.version_info < (3, 11))' 2>/dev/null) \
	  || { echo "heedful needs Python 3.11 or newer, and $(PYTHON3) is $${version:-not there}; name another one: make PYTHON3=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON3) -m venv .venv

# Every package is one of those in the lock, by its hash, and nothing else is fetched: the one with real weights would ask
# for a library that nothing here uses. Torch comes last and by itself (see torch.lock), when all but its own parts are there.
$(SETUP): requirements.lock torch.lock pyproject.toml | $(VENV)/python
	@echo "setting up .venv: about a gigabyte, one to three minutes"
	@$(VENV)/python -m pip install --quiet --no-deps --require-hashes --requirement requirements.lock
	@$(VENV)/python -m pip install --quiet --requirement torch.lock
	@$(VENV)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(SETUP) ## train a small model to reverse sequences, and write its report
	@if [ -e $(DEMO)/report.html ]; then \
	  echo "already trained; the report is $(DEMO)/report.html. To train again: make clean-demo demo"; \
	else \
	  $(VENV)/heedful train reverse --out $(DEMO) $(if $(wildcard $(DEMO)),--resume); \
	fi

test: lint types ## lint, types and every test
	OMP_NUM_THREADS=1 $(VENV)/python -m pytest -n $(JOBS) --dist worksteal $(ARGS)

lint: $(SETUP) ## ruff: rules and format
	$(VENV)/ruff check
	$(VENV)/ruff format --check

format: $(SETUP) ## let ruff mend what it can
	$(VENV)/ruff check --fix
	$(VENV)/ruff format

types: $(SETUP) ## mypy
	$(VENV)/mypy

prove: $(SETUP) ## what takes too long for a test: kills, every kind of attention learning to sort, and damaged input
	OMP_NUM_THREADS=1 $(VENV)/python -m tests.prove.parsers
	OMP_NUM_THREADS=1 $(VENV)/python -m tests.prove.kills --out docs/reliability.md
	OMP_NUM_THREADS=2 $(VENV)/python -m tests.prove.kinds --threads 2 --out docs/attention.md

golden: $(SETUP) ## every recipe's short run, byte by byte against a commit: make golden BASE=COMMIT
	$(VENV)/python -m tests.prove.golden --base $(or $(BASE),$(error name the commit to compare with: make golden BASE=COMMIT)) $(ARGS)

# With PYTHON=python3 this runs on a machine that brings its own torch, and sets nothing up.
test-gpu: $(if $(filter $(VENV)/python,$(PYTHON)),$(SETUP)) ## kernels against their definitions on a GPU, into docs/gpu.json
	$(PYTHON) -m tests.gpu.kernels --out docs/gpu.json

# What the site is built with is fetched for it alone (docs/decisions/documentation.md).
$(DOCS_SETUP): docs.lock $(SETUP)
	@$(VENV)/python -m pip install --quiet --no-deps --require-hashes --requirement docs.lock
	@touch $@

docs: $(DOCS_SETUP) ## build the documentation into build/site, and check every link of it
	$(VENV)/python -m tools.docs_pages build/docs $(ARGS)
	NO_MKDOCS_2_WARNING=1 $(VENV)/python -m mkdocs build --quiet --config-file build/mkdocs.yml
	$(VENV)/python tools/docs_check.py build/site

pictures: $(SETUP) ## train the models of the README's pictures, and draw them anew (ten minutes)
	$(VENV)/python -m tools.docs_pictures docs

wheel: $(SETUP) ## build dist/heedful-*.whl
	$(VENV)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .

lock: $(SETUP) ## write the hashes of all pinned versions into requirements.lock, as the package index lists them
	$(VENV)/python tools/lock.py

clean: ## remove what was built, but neither .venv nor runs
	rm -rf dist build .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find heedful tests -name __pycache__ -type d -prune -exec rm -rf {} +

clean-demo: ## remove the demo's run
	rm -rf $(DEMO)
