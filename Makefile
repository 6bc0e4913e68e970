# `make book` and `make test` do all their own set-up. `make help` lists the rest.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PY := $(BIN)/python
PORT ?= 8000
WORKERS ?= $(shell nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
# A worker that dies ends the run, and its test is named: with another one xdist waits for ever.
SPREAD = -n $(WORKERS) --dist loadscope --no-loadscope-reorder --max-worker-restart=0
INSTALL := $(PY) -m pip install --quiet --disable-pip-version-check
CHAPTERS := $(wildcard chapters/*.ipynb)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help book quick test coverage test-slow test-gpu test-pages test-colab serve lab new picture chapter size lock release release-check paper clean

help:  ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */make \1\t/' | expand -t 22

# The environment is made anew only when a file of requirements changes.
$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "make: $(PYTHON) is older than 3.11; name a newer one: make PYTHON=python3.12 …" >&2; exit 2; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || \
	  { echo "make: Python's venv module is missing (Debian, Ubuntu: apt-get install python3-venv)" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.book: $(VENV)/.made requirements.txt requirements.lock
	$(PY) tools/install.py requirements
	@touch $@

$(VENV)/.dev: $(VENV)/.book requirements-dev.txt requirements-dev.lock
	$(PY) tools/install.py requirements-dev
	@touch $@

book: $(VENV)/.book  ## build the book to _build/html/index.html; warnings are errors
	$(PY) -m book.build
	@echo "The book: _build/html/index.html (make serve opens it in a browser)"

# `make quick SINCE=main`: all of a branch; WITHIN=60: fewer seconds. Not instead of `make test`.
SINCE ?= HEAD
WITHIN ?= 120

quick: $(VENV)/.dev  ## style, types and the tests nearest to what you changed, in two minutes
	$(PY) tools/quick.py --since "$(SINCE)" --seconds "$(WITHIN)"

# Each worker multiplies on its own core: threads of BLAS would wait for each other there.
test test-slow coverage: export OPENBLAS_NUM_THREADS ?= 1

test: $(VENV)/.dev  ## style, types, unit tests, chapters, the built book in a browser
	$(PY) -m ruff check .
	$(PY) -m mypy
	$(PY) -m book.build
	BOOK_BUILT=1 $(PY) -m pytest $(SPREAD) tests

size: $(VENV)/.made  ## files, lines and tokens of each package against its budget (BUDGET=1 renews it)
	@$(PY) tools/size.py $(if $(BUDGET),--budget)

lock: $(VENV)/.made  ## write requirements*.lock from the bounds (UPGRADE=1: at their newest)
	$(INSTALL) 'uv>=0.5,<1'
	$(PY) tools/lock.py $(if $(UPGRADE),--upgrade)

coverage: $(VENV)/.dev  ## which lines of lib and book make test's tests run: shown, no gate
	mkdir -p _build/coverage
	$(PY) -m coverage erase
	$(PY) -m coverage run -m pytest $(SPREAD) tests
	$(PY) -m coverage combine -q
	$(PY) -m coverage report --format=total
	$(PY) -m coverage html -q -d _build/coverage/html
	@echo "The lines: _build/coverage/html/index.html"

test-slow: $(VENV)/.dev  ## every shape, scalar, order of warps, architecture and mutant
	$(PY) -m pytest $(SPREAD) -m slow tests

# What times anything runs by itself; of the rest what takes longest comes first.
MINUTES ?= 15
test-gpu: export GPU_TESTS_END = $(shell expr $$(date +%s) + 60 \* $(MINUTES))
test-gpu: export OPENBLAS_NUM_THREADS ?= 1

test-gpu: $(VENV)/.dev  ## the tests that need an NVIDIA GPU, for 15 minutes; says what it left
	$(INSTALL) -r requirements-gpu.txt
	$(PY) -m pytest -m "gpu and not slow" tests/measure; alone=$$?; \
	$(PY) -m pytest $(SPREAD) -m "gpu and not slow" tests --ignore=tests/measure && exit $$alone

test-pages: $(VENV)/.dev  ## every page by axe-core, printed, without scripts, light, dark, narrow
	EVERY_VIEW=1 $(PY) -m pytest -m browser tests/book/test_browser.py

test-colab: $(VENV)/.dev  ## play Colab: every chapter to its end (PYTHON=python3.13; half an hour)
	COLAB_PYTHON="$(PYTHON)" $(PY) -m pytest -m colab -rP tests/colab

serve: book  ## serve the built book on this machine
	@$(PY) -m book.serve "$(PORT)"

new: $(VENV)/.book  ## begin a kernel version: make new NAME=29_mine
	@$(PY) -m lib new "$(NAME)"

lab: $(VENV)/.book  ## open the chapters in JupyterLab, at the page that says where to start
	$(INSTALL) -r requirements-lab.txt
	$(BIN)/jupyter lab chapters/index.ipynb

picture: book $(VENV)/.dev  ## photograph the first page for README and for links to the book
	$(PY) -m tests.book.picture

chapter: $(VENV)/.book  ## execute one chapter in place: make chapter NAME=01_naive
	@test -f "chapters/$(NAME).ipynb" || \
	  { echo "make chapter: no chapters/$(NAME).ipynb; there are: $(notdir $(CHAPTERS:.ipynb=))" >&2; exit 2; }
	$(PY) -m lib notebooks --execute chapters/$(NAME).ipynb

release: $(VENV)/.dev  ## write a release into the repository: make release VERSION=1.0.0
	@$(PY) -m lib release "$(VERSION)"

release-check: $(VENV)/.dev  ## all that must hold before a release; says at its end what failed
	$(PY) -m lib release --check

paper: $(VENV)/.book  ## draw the papers' figures and fill their numbers
	$(PY) -m book.paper

clean:  ## remove what the commands made; `.venv` too
	rm -rf _build $(VENV) .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
