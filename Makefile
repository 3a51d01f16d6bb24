# `make demo` and `make test` need only Python 3.10 or newer; a C++ compiler makes them faster.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
KERNEL := $(wildcard src/kernel/*)
PYTEST := $(BIN)/python -m pytest
LOWEST_PIP := $(BIN)/python -m pip --python .venv-lowest/bin/python
# The tests start hundreds of processes: without bytecode, each would compile the package again.
export PYTHONDONTWRITEBYTECODE :=
# The tests use all cores: threads of their own would only wait for each other.
test test-fast test-all test-spark test-lowest coverage: export OPENBLAS_NUM_THREADS := 1
FAST := -m "not slow and not browser and not adapters and not spark" --ignore tests/spark

.PHONY: help demo test test-fast test-all test-spark test-lowest lint docs pictures wheel coverage bench fuzz faults clean

help:
	@echo "make demo      the bundled benchmark: leaderboard in the terminal, report in ./steelyard-demo"
	@echo "make test      linters, types and tests; a few minutes"
	@echo "make test-all  slow tests, browser, adapters, Spark, documentation, lowest versions, distributions"
	@echo "make docs      build the documentation site into ./site"
	@echo "make pictures  make the pictures and the copied outputs of the documentation again"
	@echo "make wheel     build the wheels and the source distribution and test each in an empty environment"
	@echo "make coverage  the tests of make test with a coverage report"
	@echo "make bench     timings, and other tools' timings"
	@echo "make fuzz      mutated inputs for the kernel and the readers: SECONDS=12 of each, or INPUTS=10000000"
	@echo "make faults    200 kills, full disks, two processes at once, retrievers that break, engines that are killed"
	@echo "make lint      ruff and mypy"
	@echo "make clean     remove environments, builds and caches"

demo: $(VENV)/.installed
	$(BIN)/steelyard demo

test: $(VENV)/.tested
	$(MAKE) --jobs 2 lint test-fast
	@echo "Slow tests and those of the browser, the adapters and Spark are run by make test-all."

test-fast: $(VENV)/.tested
	$(PYTEST) -n auto $(FAST)
	$(PYTEST) -n auto --doctest-modules src/steelyard --ignore src/steelyard/spark

test-all: $(VENV)/.tested-all
	STEELYARD_NATIVE=0 $(PYTEST) -n auto tests/alignment tests/retrievers/test_bm25.py
	$(PYTEST) -n 3 --dist loadfile --durations 25 -m "slow or browser or adapters"
	$(MAKE) --jobs 2 $(if $(filter output-sync,$(.FEATURES)),--output-sync=target) test-spark fuzz wheel test-lowest docs

test-spark: $(VENV)/.tested-all
	$(PYTEST) -m spark tests/spark
	$(PYTEST) --doctest-modules src/steelyard/spark

# The lowest versions that pyproject.toml allows, without the kernel and without the peers.
test-lowest: $(VENV)/bin/python
	$(PYTHON) -m venv --without-pip .venv-lowest
	$(LOWEST_PIP) install --quiet $$($(PYTHON) .ci/lowest.py) pytest pytest-xdist hypothesis lz4 cbor2 zstandard
	STEELYARD_PURE=1 $(LOWEST_PIP) install --quiet --no-deps .
	STEELYARD_LOWEST=1 .venv-lowest/bin/python -m pytest -n auto $(FAST) tests

lint: $(VENV)/.tested
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(VENV)/.documented
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# After a change of the report page or of what the commands print.
pictures: $(VENV)/.tested-all
	$(BIN)/python -m scripts.console_blocks --write
	$(BIN)/python -m docs.generate
	$(BIN)/python -m scripts.notebooks
	$(BIN)/python -m scripts.pictures

wheel: $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --group build
	$(BIN)/python scripts/check_distributions.py

coverage: $(VENV)/.tested
	$(BIN)/python -m pip install --quiet --group coverage
	$(PYTEST) -n auto $(FAST) --cov --cov-report=term --cov-report=xml --cov-report=html

bench: $(VENV)/.tested
	$(BIN)/python -m benchmarks

# SECONDS for each program; or INPUTS of the kernel's readers, and a tenth for BM25 and for the readers in Python.
fuzz: $(VENV)/.tested
	$(BIN)/python -m fuzz $(if $(INPUTS),--inputs $(INPUTS),--seconds $(or $(SECONDS),12)) --seed $(or $(SEED),0)

faults: $(VENV)/.tested
	$(BIN)/python -m scripts.faults

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml $(KERNEL)
	$(BIN)/python -m pip install --quiet --editable '.[all]'
	touch $@

$(VENV)/.tested: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --group test --group lint
	$(BIN)/python -m pip install --quiet --no-deps 'ir_measures>=0.4'
	touch $@

$(VENV)/.tested-all: $(VENV)/.tested
	$(BIN)/python -m pip install --quiet --group adapters --group browser --group spark --group notebooks --group docs
	touch $@

$(VENV)/.documented: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --group docs
	touch $@

clean:
	rm -rf $(VENV) site .venv-lowest build dist htmlcov coverage.xml .coverage .coverage.* .pytest_cache .mypy_cache .ruff_cache .hypothesis
