# Every target does its own set-up. `make demo` and `make test` are the two commands a newcomer needs.
PYTHON ?= python3
PORT ?= 9090
BIN := .venv/bin
PIP_FLAGS := --disable-pip-version-check --quiet
export PYTHONUNBUFFERED := 1

.PHONY: help demo serve worker test e2e-all check bench bench-crowd chaos soak audit fuzz format clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /  make \1\t/' | expand -t 18

demo: .venv/.runtime .venv-label-studio/.runtime ## start Label Studio and Polyvox with a sample project (Ctrl-C stops both)
	@$(BIN)/python -m demo $(DEMO_ARGS)

serve: .venv/.runtime ## start Polyvox alone: web and jobs on 127.0.0.1:$(PORT)
	$(BIN)/python -m backend serve --host 127.0.0.1 --port $(PORT)

worker: .venv/.runtime ## start one more job process
	$(BIN)/python -m backend worker

test: .venv/.dev .venv-label-studio/.runtime ## all tests, with a real Label Studio and a real browser
	@scripts/system-packages.sh
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 3 --dist loadscope --no-loadscope-reorder \
	  --durations=20 $(PYTEST_ARGS)

e2e-all: .venv/.dev .venv-label-studio/.runtime ## all kinds of projects; with POLYVOX_DATA=<folder> measuring sets too
	@scripts/system-packages.sh
	POLYVOX_DATA="$(POLYVOX_DATA)" $(BIN)/python -m pytest -m "all_kinds$(if $(POLYVOX_DATA), or measuring_sets)" \
	  --durations=5 tests/e2e $(PYTEST_ARGS)

check: .venv/.dev ## style, types, import contracts, docs that must be current
	$(BIN)/ruff check .
	$(BIN)/mypy model backend labelstudio demo
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q tests/project

bench: .venv/.dev ## benchmarks; results go to benchmarks/results/
	$(BIN)/python -m benchmarks

bench-crowd: .venv/.dev .venv-peers/.runtime ## crowd statistics beside crowd-kit, peerannot and cleanlab (half an hour)
	$(BIN)/python -m benchmarks.crowd --peers .venv-peers/bin/python $(BENCH_ARGS)
	@if [ -n "$(CROWD_DATA)" ]; then \
	  $(BIN)/python -m benchmarks.crowd_quality "$(CROWD_DATA)" --peers .venv-peers/bin/python; \
	else echo "Accuracy on measuring sets: make bench-crowd CROWD_DATA=<folder>"; fi

chaos: .venv/.dev .venv-label-studio/.runtime ## kill every part at seeded moments, 20 rounds; report in benchmarks/results/
	@scripts/system-packages.sh
	$(BIN)/python -m tests.chaos --rounds 20 --out benchmarks/results/chaos.md

soak: .venv/.dev .venv-label-studio/.runtime ## a million bad requests, half an hour of load, hostile clients, every fault (2 to 4 hours)
	@scripts/system-packages.sh
	$(BIN)/python -m tests.soak all --out benchmarks/results/soak.md $(SOAK_ARGS)

audit: .venv/.dev ## pinned versions against advisories: make audit ADVISORIES=<OSV file, folder or archive>
	$(BIN)/python -m scripts.audit $(ADVISORIES)

fuzz: .venv/.dev ## 2,000 bad requests, 10,000 generated projects, 2,000 damaged files
	POLYVOX_MATRIX_CASES=2000 $(BIN)/python -m pytest -q tests/backend/matrix
	POLYVOX_FUZZ_CASES=10000 $(BIN)/python -m pytest -q tests/backend/labeling/test_fuzz.py
	POLYVOX_FUZZ_FILES=2000 $(BIN)/python -m pytest -q tests/model/encoders/test_damaged_files.py

format: .venv/.dev ## sort imports and mend what ruff can mend
	$(BIN)/ruff check --fix .

clean: ## remove environments and caches (never data/)
	rm -rf .venv .venv-label-studio .venv-peers .mypy_cache .ruff_cache .pytest_cache .hypothesis local

.venv/.runtime: requirements.txt requirements-nodeps.txt
	@echo "Setting up .venv (a few minutes, once)"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install $(PIP_FLAGS) -r requirements.txt
	@$(BIN)/python -m pip install $(PIP_FLAGS) --no-deps --require-hashes -r requirements-nodeps.txt
	@touch $@

.venv/.dev: .venv/.runtime requirements-dev.txt
	@$(BIN)/python -m pip install $(PIP_FLAGS) -r requirements-dev.txt
	@touch $@

.venv-label-studio/.runtime: requirements-label-studio.txt
	@echo "Setting up .venv-label-studio (Label Studio in an environment of its own; a few minutes, once)"
	@test -x .venv-label-studio/bin/python || $(PYTHON) -m venv .venv-label-studio
	@.venv-label-studio/bin/python -m pip install $(PIP_FLAGS) -r requirements-label-studio.txt
	@touch $@

.venv-peers/.runtime: requirements-peers.txt
	@echo "Setting up .venv-peers (what crowd statistics are measured against; some gigabytes, once)"
	@test -x .venv-peers/bin/python || $(PYTHON) -m venv .venv-peers
	@.venv-peers/bin/python -m pip install $(PIP_FLAGS) -r requirements-peers.txt
	@touch $@
