PYTHON ?= python3
TORCH_INDEX ?=
JOBS ?= 2
PRECISION ?=

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
TORCH := $(shell sed -n 's/^torch==//p' constraints.txt)
WANTED := name a Python 3.11, 3.12 or 3.13, as in PYTHON=python3.12 make setup
NOTEBOOKS := $(sort $(wildcard notebooks/[0-9][0-9]_*.ipynb))

export HF_HUB_DISABLE_TELEMETRY := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
ifneq ($(PRECISION),)
export CSE_AUTO_PRECISION := $(PRECISION)
endif
PYTEST := HF_HUB_OFFLINE=1 $(BIN)/python -m pytest

.DEFAULT_GOAL := help
.PHONY: help setup check course lab assignments book report test test-fast test-notebooks test-slow test-browser test-real test-all verify-results table bench bench-gpu lint format notebooks strip clean

help:  ## list the verbs
	@awk -F ':.*## ' '/^##@ / {print "\n" substr($$0, 5)} /^[a-z-]+:.*## / {printf "  make %-17s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

##@ Learn

setup: $(STAMP)  ## create .venv with every version fixed (PYTHON=python3.12, TORCH_INDEX=URL)

$(BIN)/python:
	@command -v $(PYTHON) > /dev/null || { echo "$(PYTHON) is not here: $(WANTED)"; exit 1; }
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; \
	    sys.exit(None if (3, 11) <= v <= (3, 13) else "$(PYTHON) is Python %d.%d: $(WANTED)" % v)'
	$(PYTHON) -m venv $(VENV)

$(STAMP): pyproject.toml constraints.txt | $(BIN)/python
	$(if $(TORCH_INDEX),$(BIN)/python -m pip install --no-deps --index-url $(TORCH_INDEX) torch==$(TORCH))
	$(BIN)/python -m pip install -c constraints.txt -e '.[test,reference,cluster,classroom,book,browser]'
	@touch $@

check:  ## can the course run here? what to do if not; installs nothing
	@$$(test -x $(BIN)/python && echo $(BIN)/python || echo $(PYTHON)) -m tools.check

course: setup  ## execute every notebook at the mini profile into outputs/, JOBS=2 at a time
	HF_HUB_OFFLINE=1 $(BIN)/python -m tools.course --jobs $(JOBS)

lab: setup  ## open your own copies of the notebooks, in my/, in JupyterLab
	@$(BIN)/python -m tools.check || true
	$(BIN)/python -m tools.lab

book: setup  ## the course as a web site, into outputs/book/html
	$(BIN)/python -m tools.site

report: setup  ## notebook 07 as a report to cite, HTML and PDF, into outputs/report
	$(BIN)/python -m tools.report

##@ Teach

assignments: setup  ## release, collect and grade all assignments with made-up students, into outputs/classroom
	$(BIN)/python -m tools.classroom course

##@ Develop

test: test-fast test-real test-notebooks  ## lint, types, tests, each notebook once (PRECISION=fp32 or bf16: what auto means)

test-fast: lint  ## lint, types, units and doctests, in JOBS=2 processes
	$(PYTEST) -n $(JOBS) --dist worksteal

test-notebooks: setup  ## each notebook executed once and compared with its committed outputs
	$(PYTEST) -n $(JOBS) --dist load --maxschedchunk 1 -m "notebook and not slow and not browser" tests/test_notebooks.py

test-slow: setup  ## notebooks with other parameters and without lessons, killed runs, the quality of the mini data
	$(PYTEST) -n $(JOBS) --dist load --maxschedchunk 1 -m "slow and not browser" tests

test-browser: setup  ## JupyterLab and the web site in Chromium
	$(PYTEST) -m browser tests

test-real: setup  ## tests on real data, skipped where there is none (CSE_DATA=folder)
	$(PYTEST) -n $(JOBS) --dist worksteal -m "real_data and not slow and not notebook and not browser" tests

test-all: test test-slow test-browser assignments book  ## every check there is

verify-results: setup  ## train two committed rows again, drawn by date (CSE_DATA=folder)
	HF_HUB_OFFLINE=1 $(BIN)/python -m tools.verify

lint: setup  ## ruff, mypy and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup  ## let ruff fix and format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

table: setup  ## the tables of the README and the pages of results/, from results/
	$(BIN)/python -m tools.table
	$(BIN)/python -m tools.results_pages

bench: setup  ## side-by-side timings on the CPU
	$(BIN)/python -m benchmarks

bench-gpu: setup  ## all timings on a GPU, beside their targets
	$(BIN)/python -m benchmarks --gpu

notebooks: setup  ## execute the notebooks in place, for a commit
	HF_HUB_OFFLINE=1 $(BIN)/python -m tools.refresh

strip: setup  ## clear the notebooks' outputs
	$(BIN)/jupyter nbconvert --clear-output --inplace $(NOTEBOOKS)

clean:  ## remove caches and build files (.venv and outputs/ stay)
	rm -rf .mypy_cache .pytest_cache .ruff_cache .hypothesis .snakemake *.egg-info
	find . -path ./$(VENV) -prune -o -type d \( -name __pycache__ -o -name .ipynb_checkpoints \) -exec rm -rf {} +
