# make book        the report on the sample, or on BENCHMARK=path/benchmark.yml → _build/html/index.html
# make test        fast tests             make test-slow   more book builds, the browser
# make pdf         the report that was made last as one PDF → _build/evalkit.pdf (needs Chromium)
# make bench       speed and memory       make lint        style
# make shots       pictures of all pages  make clean       all that can be made again
#
# PYTHON=python3.12 chooses the Python that .venv is made with. To use an environment of your own: make VENV=path ...

PYTHON ?= python3
VENV ?= .venv
BENCHMARK ?= $(SAMPLE)
SAMPLE := toytown/benchmark.yml
SHOTS ?= shots
RUN := $(VENV)/bin/python -m
INSTALL := $(RUN) pip install --quiet --disable-pip-version-check

.DELETE_ON_ERROR:
.PHONY: help book pdf test test-slow bench lint shots clean

help:
	@sed -n '/^#/!q;s/^# \{0,1\}//p' Makefile

book: $(VENV)/installed $(filter $(SAMPLE),$(or $(BENCHMARK),$(SAMPLE)))
	@file="$(or $(BENCHMARK),$(SAMPLE))"; [ -f "$$file" ] || [ ! -f "$(PWD)/$$file" ] || file="$(PWD)/$$file"; \
	  set -x; $(RUN) evalkit report --benchmark "$$file"

pdf: $(VENV)/installed-pdf
	@[ -d _build/html ] || $(MAKE) book
	$(RUN) evalkit.printing

test: $(VENV)/installed-dev
	$(RUN) pytest -n auto --dist loadfile -m "not slow"

test-slow: $(VENV)/installed-dev
	$(RUN) pytest -n auto --dist worksteal -m slow

bench: $(VENV)/installed-bench
	$(VENV)/bin/python tests/benchmarks/run.py

lint: $(VENV)/installed-dev
	$(RUN) ruff check
	$(RUN) ruff format --check

shots: $(VENV)/installed-dev
	$(VENV)/bin/python tests/book_checks.py _build/html --shots $(SHOTS)

clean:
	rm -rf _build _build.new _build.old _build.print book/.report.lock book/executed book/vendor toytown shots build *.egg-info .pytest_cache .ruff_cache .hypothesis
	find evalkit tests -name __pycache__ -prune -exec rm -rf {} +

$(SAMPLE): | $(VENV)/installed
	$(RUN) evalkit sample --out $(@D)

# What is installed leaves a stamp, so that the next run of make starts at once.
$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "evalkit needs Python 3.11 or later; $(PYTHON) is not. Choose one: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "$(PYTHON) cannot make environments: venv is missing (Debian, Ubuntu: apt-get install python3-venv)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: requirements.txt pyproject.toml | $(VENV)/bin/python
	$(INSTALL) -r requirements.txt
	@touch $@

$(VENV)/installed-dev: $(VENV)/installed
	$(INSTALL) -e '.[dev]'
	@touch $@

$(VENV)/installed-bench: $(VENV)/installed
	$(INSTALL) -e '.[bench]'
	@touch $@

$(VENV)/installed-pdf: $(VENV)/installed
	$(INSTALL) -e '.[pdf]'
	@touch $@
