# Every target sets up .venv by itself. `make help` lists them.
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
BUF_VERSION := 1.75.0
DATA ?= ../shared/data
.DEFAULT_GOAL := help
.PHONY: help install demo serve test lint bench proto proto-baseline soak clean

help: ## Show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

install: $(STAMP) ## Set up .venv with the server, its extras and the Python client, editable

$(STAMP): pyproject.toml clients/python/pyproject.toml .ci/bootstrap
	@sh .ci/bootstrap $(VENV)
	@echo "installing into $(VENV) (a few minutes the first time) ..."
	@$(BIN)/python -m pip install -q -e clients/python -e '.[hub,test,dev,bench]'
	@touch $(STAMP)

demo: install ## Show the main job: one tool teaches, another recalls
	@$(BIN)/memsvc demo

serve: install ## Run the service on 127.0.0.1:50051
	@$(BIN)/memsvc serve

test: install $(VENV)/.buf ## Run lint, contract checks and all tests
	@$(BIN)/python -m pytest -n 2 --dist loadfile -q

lint: install ## Check style, types and import rules
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports

bench: install ## Run the benches (DATA=directory of the evaluation data)
	@$(BIN)/python -m bench.latency
	@$(BIN)/python -m bench.load
	@$(BIN)/python -m bench.restart
	@$(BIN)/python -m bench.quality --dataset locomo --data $(DATA)
	@$(BIN)/python -m bench.quality --dataset cmrc --data $(DATA)
	@$(BIN)/python -m bench.token_saving --dataset locomo --data $(DATA)
	@$(BIN)/python -m bench.token_saving --dataset memorybank --data $(DATA)
	@$(BIN)/python -m bench.forgetting --data $(DATA)

proto: install ## Regenerate the stubs from proto/
	@$(BIN)/python proto/generate.py

proto-baseline: install $(VENV)/.buf ## At a release: freeze the contract that buf breaking compares with
	@cd proto && ../$(VENV)/buf/node_modules/.bin/buf build -o baseline.binpb

soak: install ## Run the long tests
	@$(BIN)/python -m pytest -q -m soak tests

# buf comes from npm; without npm the tests of the contract say that they were skipped (and fail in CI).
$(VENV)/.buf: $(STAMP)
	@if command -v npm >/dev/null; then npm install --silent --no-fund --no-audit --prefix $(VENV)/buf @bufbuild/buf@$(BUF_VERSION); \
	else echo "npm is missing: buf's checks are skipped (apt-get install npm)"; fi
	@touch $@

clean: ## Remove .venv and caches
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .benchmarks *.egg-info clients/python/*.egg-info
