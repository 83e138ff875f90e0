# Everything a user, a developer or CI runs. Needs Python ≥ 3.11 with pip; the rest goes into .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# folders too: their time changes when a file goes away
SOURCES := $(shell find src ! -path '*/__pycache__*')
PACKAGES := models/minilm studies examples/demo
PACKAGE_SOURCES := $(shell find $(PACKAGES) ! -path '*/__pycache__*' ! -path '*/tests/*')

# threads that wait without spinning: many times faster where something else runs beside the tests
export OMP_WAIT_POLICY := PASSIVE

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test test-slow test-auto test-wings test-faults fuzz check format bench gpu docs reference clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "  PYTHON=python3.12 chooses the interpreter that .venv is made with."

demo: $(VENV)/.installed ## train a small BERT from nothing and fill blanks (MINUTES=N)
	$(BIN)/bertkit demo $(if $(MINUTES),--minutes $(MINUTES))

TEST := $(BIN)/python -m pytest --numprocesses 2 --dist loadfile --no-loadscope-reorder
test: $(VENV)/.installed $(VENV)/.dev ## run the tests on the installed package (PYTEST_FLAGS=...)
	$(TEST) -m "not exhaustive" $(PYTEST_FLAGS)

test-slow: $(VENV)/.installed $(VENV)/.dev ## run the exhaustive sets, which `make test` leaves out
	$(TEST) -m exhaustive $(PYTEST_FLAGS)

PROCESSOR ?= zen4
ROUNDING_ERROR ?= 1e-6
AUTO_TESTS := $(addprefix tests/unit/,cli inference interpret retrieval recipes/finetune) \
  $(addprefix tests/unit/decoders/,generation interpret test_pipelines.py test_text_scorer.py) \
  $(addprefix tests/e2e/test_,embed.py features.py predict.py search.py) \
  $(addprefix tests/parity/test_,features.py minilm.py sentence_transformers.py)
# Files of those folders whose tests load no model, or compute in other precisions than auto's.
NOT_AUTO := $(addprefix tests/unit/cli/test_,main.py output.py pretrain.py process.py) \
  $(addprefix tests/unit/inference/,onnx/test_graph.py test_forked_processes.py) \
  $(addprefix tests/unit/retrieval/test_,vector_file.py vector_index.py walk.py) \
  $(addprefix tests/unit/recipes/finetune/test_,card.py comparison.py settings.py)
test-auto: $(VENV)/.installed $(VENV)/.dev ## test what loads models, as on another processor (PROCESSOR=zen4|amx|plain)
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile -m "not exhaustive" --processor $(PROCESSOR) \
	  --rounding-error $(ROUNDING_ERROR) $(addprefix --ignore=,$(NOT_AUTO)) $(AUTO_TESTS)

test-wings: $(VENV)/.installed $(VENV)/.dev ## delete each wing in turn from a copy, and test what is left (WHOLE=1)
	$(BIN)/python tools/test_wings.py $(if $(WHOLE),--whole)

test-faults: SEED ?= $(shell date +%s)
test-faults: $(VENV)/.installed $(VENV)/.dev ## kill a run at 200 places, and other faults (SEED=N)
	BERTKIT_NUM_KILLS=200 BERTKIT_NUM_RANK_KILLS=40 BERTKIT_FAULT_SEED=$(SEED) \
	  $(BIN)/python -m pytest tests/faults $(PYTEST_FLAGS)

fuzz: SECONDS ?= 600
fuzz: SEED ?= $(shell date +%s)
fuzz: $(VENV)/.installed $(VENV)/.dev ## feed every parser with broken files, 10 minutes each (SECONDS=N, SEED=N)
	BERTKIT_FUZZ_SECONDS=$(SECONDS) BERTKIT_FUZZ_SEED=$(SEED) BERTKIT_FUZZ_FOLDER=.cache/fuzz \
	  $(BIN)/python -m pytest tests/fuzz $(PYTEST_FLAGS)

check: $(VENV)/.installed $(VENV)/.dev ## style, types, floors, documentation
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/oxlint --deny-warnings src studies examples tests
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/write_reference.py --check
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html

format: $(VENV)/.dev ## put the code into the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.installed $(VENV)/.dev ## run every benchmark, one after the other, into benchmarks/results/local/
	@set -e; for benchmark in $(sort $(wildcard benchmarks/bench_*.py)); do \
	  echo "== $$benchmark"; \
	  $(BIN)/python "$$benchmark" --output "benchmarks/results/local/$$(basename "$$benchmark" .py).json"; done

# Nothing is installed: PYTHON, or .venv where PYTHON isn't given, needs PyTorch with CUDA.
gpu: ## run GPU tests and benchmarks, a part at a time (PART=, MINUTES=, GPU_DATA=, GPU_OUTPUT=)
	@$(if $(and $(filter file,$(origin PYTHON)),$(wildcard $(BIN)/python)),$(BIN)/python,$(PYTHON)) \
	  benchmarks/run_gpu.py $(foreach part,$(PART),--part $(part)) \
	  $(if $(MINUTES),--minutes $(MINUTES)) $(if $(GPU_DATA),--data $(GPU_DATA)) \
	  $(if $(GPU_OUTPUT),--output $(GPU_OUTPUT))

docs: $(VENV)/.installed $(VENV)/.dev reference ## build the documentation into docs/_build/html
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

reference: $(VENV)/.installed ## write the pages of docs/reference that are made from the code
	$(BIN)/python tools/write_reference.py

clean: ## remove what was built, .venv too
	rm -rf $(VENV) build dist docs/_build .coverage .coverage.* .hypothesis .import_linter_cache \
	  .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp is made when its step has ended well, so an interrupted step is done again.

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "bertkit needs Python 3.11 or newer, and '$(PYTHON)' isn't;" \
	    "name another one: make PYTHON=python3.12" >&2; exit 1; }
	@echo "Making $(VENV) with $$($(PYTHON) --version)"
	@if $(PYTHON) -c 'import ensurepip' 2>/dev/null; then \
	  $(PYTHON) -m venv $(VENV); \
	else \
	  $(PYTHON) -m venv --without-pip $(VENV) && \
	  $(PYTHON) -m pip --quiet --python $(BIN)/python install pip; \
	fi || { echo "'$(PYTHON)' can't make a virtual environment;" \
	  "on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@touch $@

# PyTorch alone and first: of two builds of one version pip takes the one with a local label, which
# is the CPU build where the registry has it.
$(VENV)/.torch: constraints.txt | $(VENV)/.created
	$(PIP) install --quiet --upgrade --constraint constraints.txt pip
	$(PIP) install --constraint constraints.txt torch hatchling
	@touch $@

$(VENV)/.packages: $(PACKAGE_SOURCES) | $(VENV)/.torch
	$(PIP) install --quiet --no-build-isolation --no-deps $(addprefix ./,$(PACKAGES))
	@touch $@

$(VENV)/.installed: pyproject.toml constraints.txt $(SOURCES) $(VENV)/.packages | $(VENV)/.torch
	$(PIP) install --quiet --no-build-isolation --constraint constraints.txt '.[train,tensorboard]'
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/.torch
	$(PIP) install --quiet --constraint constraints.txt --group dev
	@touch $@
