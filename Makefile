# Two commands set everything up on a fresh machine: `make demo` and `make test`.
# TORCH= chooses how PyTorch is installed: a requirement, or a requirement with pip options such as an --index-url.
# PYTHON= chooses the interpreter, which then has an environment of its own: make test PYTHON=python3.13.
# CONSTRAINTS= chooses the versions of the other libraries: build/oldest.txt, or build/newest.txt.
PYTHON ?= python3
ifeq ($(PYTHON),python3)
VENV ?= .venv
else
VENV ?= .venv-$(shell $(PYTHON) -c "import platform; print(platform.python_version())")
endif
TORCH ?= torch==2.13.0
CONSTRAINTS ?= .ci/constraints.txt

BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
SPREAD = -n $(shell $(PYTHON) -c "import os; print(min(4, 1 + os.cpu_count()))")

.PHONY: demo test soak check docs wheel setup clean

setup: $(INSTALLED)

$(INSTALLED): pyproject.toml $(CONSTRAINTS)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(TORCH)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint $(CONSTRAINTS) --editable ".[dev,docs]"
	touch $@

build/oldest.txt: pyproject.toml scripts/oldest_versions.py
	mkdir -p build
	$(PYTHON) scripts/oldest_versions.py > $@

build/newest.txt:
	mkdir -p build
	touch $@

demo: setup
	$(BIN)/python scripts/demo.py

# One thread per process: the tests run side by side, one more than there are cores, as some wait for browsers and servers.
# Those of a file go to one process, so that what they share is made once. COVERAGE=1 measures coverage, which takes longer.
test: setup
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(SPREAD) --dist loadfile --no-loadscope-reorder $(if $(COVERAGE),--cov --cov-report=term)

# The long forms that `make test` leaves out: about twenty minutes.
soak: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest $(SPREAD) -m soak --durations=0

check: setup
	$(BIN)/ruff check nmt scripts tests
	$(BIN)/ruff format --check nmt scripts tests
	$(BIN)/mypy
	$(MAKE) docs

# The site of the documentation, in build/site; a dead link or a page without a place in the navigation is an error.
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# The wheel works by itself: in an environment without this checkout, outside of it.
wheel: setup
	rm -rf dist build/wheel
	$(BIN)/python -m build --outdir dist
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist/*.whl
	$(PYTHON) -m venv build/wheel
	build/wheel/bin/python -m pip install --quiet --disable-pip-version-check $(TORCH)
	build/wheel/bin/python -m pip install --quiet --disable-pip-version-check --constraint $(CONSTRAINTS) dist/*.whl
	cd build/wheel && bin/nmt --version && bin/nmt preprocess sample

clean:
	rm -rf $(VENV) build dist .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis
