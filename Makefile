# make demo and make test need nothing but Python 3.10 or newer; a C++ compiler makes them faster.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
KERNEL := $(wildcard src/kernel/*)

.PHONY: demo test test-all test-lowest lint bench clean

demo: $(VENV)/.installed
	$(BIN)/steelyard demo

test: $(VENV)/.tested lint
	@echo "The browser, the adapters, Spark and the slow tests are run by make test-all."
	$(BIN)/python -m pytest -n auto -m "not slow and not browser and not adapters and not spark"
	$(BIN)/python -m pytest --doctest-modules src/steelyard --ignore src/steelyard/spark
	STEELYARD_NATIVE=0 $(BIN)/python -m pytest -n auto -m "not slow" tests/alignment tests/retrievers/test_bm25.py

test-all: $(VENV)/.tested-all
	$(BIN)/python -m pytest -n auto -m "slow or browser or adapters"
	$(BIN)/python -m pytest -m spark tests/spark
	$(BIN)/python -m pytest --doctest-modules src/steelyard/spark
	$(MAKE) test-lowest

# The lowest versions that pyproject.toml allows, without the kernel and without the peers.
test-lowest:
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --upgrade pip
	.venv-lowest/bin/python -m pip install --quiet $$($(PYTHON) .ci/lowest.py) pytest pytest-xdist hypothesis lz4 cbor2 zstandard
	STEELYARD_PURE=1 .venv-lowest/bin/python -m pip install --quiet --no-deps .
	.venv-lowest/bin/python -m pytest -n auto -m "not slow and not browser and not adapters and not spark" tests

lint: $(VENV)/.tested
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.tested
	$(BIN)/python -m benchmarks

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.installed: $(VENV)/bin/python pyproject.toml $(KERNEL)
	$(BIN)/python -m pip install --quiet --editable '.[all]'
	touch $@

$(VENV)/.tested: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --group test --group lint
	touch $@

$(VENV)/.tested-all: $(VENV)/.tested
	$(BIN)/python -m pip install --quiet --group adapters --group browser --group spark
	touch $@

clean:
	rm -rf $(VENV) .venv-lowest build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
