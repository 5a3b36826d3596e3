# Every target does its own set-up; `make help` lists them.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

VENV := .venv
BIN := $(VENV)/bin
PROTO_ENV := .build/proto-env
READY := $(VENV)/.ready
PROTO_READY := $(PROTO_ENV)/.ready
export OMP_NUM_THREADS ?= 1

.PHONY: help setup demo test lint proto bench faults faults-verify up down clean lock tools

help: ## Show what there is
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(READY) ## Install everything below .venv and .build
	@$(BIN)/python -c "from trackway.local.maven import ensure_jars, libs_folder; ensure_jars(libs_folder())"

demo: setup ## Run the chain on this machine: kill a worker, resume, evaluate, explain
	@$(BIN)/python examples/demo/demo.py

test: setup ## Run every test on real parts; with ARGS='…' what those select
ifdef ARGS
	$(BIN)/python -m pytest $(ARGS)
else
	$(BIN)/python -m pytest tests/e2e
	$(BIN)/python -m pytest -n 2 --dist loadfile --ignore tests/e2e
endif

lint: $(READY) $(PROTO_READY) ## Check style, types, import contracts and generated code
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(PROTO_ENV)/bin/python proto/check_fresh.py --ruff $(BIN)/ruff

proto: $(READY) $(PROTO_READY) ## Generate code from proto/trackway_proto
	$(PROTO_ENV)/bin/python proto/generate.py
	$(BIN)/ruff format -q services/common/trackway_common/events.py

bench: setup ## Measure Trackway against bare Ray on this machine; with ARGS='…' as tests/bench/run.py takes them
	$(BIN)/python -m tests.bench.run $(ARGS)

# One stack, three faults at once, each at most 120 s (150 s where it needs the stack for itself); as root, for the
# faults that need a memory cgroup or a mount.
faults: setup ## Inject every failure of the corpus (2 cores: 15 min) and write docs/failure-corpus.md; ARGS='--group G'
	$(BIN)/python -m tests.faults.corpus.run $(ARGS)

faults-verify: $(READY) ## Compute docs/failure-corpus.md again from the kept logs, and judge every attempt again
	$(BIN)/python -m tests.faults.corpus.verify

up: setup ## Start the local stack
	$(BIN)/trackway up

down: $(READY) ## Stop the local stack
	$(BIN)/trackway down

lock: $(READY) ## Resolve requirements.lock and proto/requirements.lock anew
	$(BIN)/uv pip compile -q --generate-hashes --extra dev pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile -q --generate-hashes proto/requirements.in -o proto/requirements.lock

clean: ## Remove what setup and the tests made
	rm -rf .venv .build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist

tools:
	@python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { echo "Trackway needs Python 3.11 or later: apt-get install python3" >&2; exit 1; }
	@python3 -c 'import ensurepip, venv' 2>/dev/null || { echo "Trackway needs Python's venv module: apt-get install python3-venv" >&2; exit 1; }
	@command -v java >/dev/null || { echo "Trackway needs a Java 17 runtime for Kafka: apt-get install openjdk-17-jre-headless" >&2; exit 1; }
	@command -v mvn >/dev/null || { echo "Trackway needs Maven to fetch Kafka: apt-get install maven" >&2; exit 1; }

$(READY): requirements.lock pyproject.toml | tools
	test -x $(BIN)/python || python3 -m venv $(VENV)
	test -x $(BIN)/uv || $(BIN)/pip install -q 'uv>=0.9'
	$(BIN)/uv pip sync -q requirements.lock
	$(BIN)/uv pip install -q --no-deps --no-build-isolation -e .
	touch $@

$(PROTO_READY): proto/requirements.lock | $(READY)
	test -x $(PROTO_ENV)/bin/python || $(BIN)/uv venv -q $(PROTO_ENV)
	$(BIN)/uv pip sync -q --python $(PROTO_ENV)/bin/python proto/requirements.lock
	touch $@
