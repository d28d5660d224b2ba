# `make quickstart` and `make test` work on a fresh machine with Python 3.11 or 3.12: both first build .venv, or the
# folder that ENVIRONMENT names.

SUPPORTED = import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))
# python3, or python3.12 or python3.11 where python3 is another version; `make PYTHON=...` names one.
PYTHON ?= $(firstword $(foreach p,python3 python3.12 python3.11,$(shell $(p) -c '$(SUPPORTED)' 2>/dev/null && echo $(p))) python3)
ENVIRONMENT ?= .venv
VENV := $(ENVIRONMENT)/bin/python
INSTALLED := $(ENVIRONMENT)/.installed
DOCS_INSTALLED := $(ENVIRONMENT)/.docs

# Of the tests at once, each with one thread; a file's tests stay together.
PROCESSES ?= 2

# Real data for the tests that want it; without the folder they are skipped.
ifneq ($(wildcard ../shared/data),)
export UNIFIED_DATA ?= $(abspath ../shared/data)
endif

.PHONY: help install test check lint docs quickstart quickstart-long bench bench-full bench-gpu gpu-check gpu-runs trust trust-full

help:
	@echo "make quickstart       prepare, pre-train, fine-tune, generate and score on text that every install has"
	@echo "make quickstart-long  the same with the summarization part that otherwise wants a GPU"
	@echo "make test             all tests; ARGS='-k masks' passes arguments to pytest, PROCESSES=8 runs more at once"
	@echo "make check            the unit tests that take less than a second each: no training, no other program"
	@echo "make lint             ruff: rules and format; mypy: types; import-linter: the order of packages"
	@echo "make docs             the documentation as a site in site/, every link checked; open site/index.html"
	@echo "make bench            speed beside other libraries on this machine; bench-full takes longer; benchmarks/report.py makes tables"
	@echo "make gpu-check        on a graphics card: is everything right? eight minutes; ARGS='--device cpu' rehearses"
	@echo "make bench-gpu        on a graphics card: speed, nine minutes; ARGS='--device cpu --tiny' rehearses"
	@echo "make gpu-runs         on a graphics card: the long runs at its size, shortest first; MINUTES=9, AT_ONCE=4, WORK=runs/card"
	@echo "make trust            a seeded sample of the campaigns: kills, losses; trust-full runs all of them and can be resumed"
	@echo "make install          only build .venv; PYTHON=/path/to/python3.12 chooses the Python"

install: $(INSTALLED)
	@echo "installed in $(ENVIRONMENT)"

$(INSTALLED): setup.py tools/install.py
	@$(PYTHON) -c "" || { echo "install: '$(PYTHON)' does not run; install Python 3.11 or 3.12, or name one: make install PYTHON=/path/to/python3.12" >&2; exit 1; }
	@$(PYTHON) tools/install.py $(ENVIRONMENT)
	@touch $@

test: $(INSTALLED)
	$(VENV) -m pytest --numprocesses $(PROCESSES) --dist loadfile --no-loadscope-reorder $(ARGS)

check: $(INSTALLED)
	$(VENV) -m pytest tests/unit -m "not slow" --numprocesses $(PROCESSES) --dist loadfile $(ARGS)

lint: $(INSTALLED)
	$(VENV) -m ruff check .
	$(VENV) -m ruff format --check .
	$(VENV) -m mypy
	$(VENV) -m mypy --config-file tools/mypy.ini
	$(dir $(VENV))lint-imports

# Its tools come by the extra `docs`; building needs no network.
$(DOCS_INSTALLED): $(INSTALLED) setup.py
	$(VENV) -m pip install --quiet --no-build-isolation --editable '.[docs]'
	@touch $@

docs: $(DOCS_INSTALLED)
	NO_MKDOCS_2_WARNING=1 $(VENV) -m mkdocs build --strict --quiet

quickstart: $(INSTALLED)
	$(VENV) recipes/quickstart/run.py $(ARGS)

quickstart-long: $(INSTALLED)
	$(VENV) recipes/quickstart/run.py --long $(ARGS)

bench: $(INSTALLED)
	$(VENV) benchmarks/run.py $(ARGS)

bench-full: $(INSTALLED)
	$(VENV) benchmarks/run.py --set full $(ARGS)

# Three commands for a machine with a graphics card; gpu/README.md says how to read their lines.
gpu-check: $(INSTALLED)
	$(VENV) -m gpu.check $(ARGS)

bench-gpu: $(INSTALLED)
	$(VENV) benchmarks/card.py $(ARGS)

MINUTES ?= 9
WORK ?= runs/card
PLAN ?= card_plan
AT_ONCE ?= 4

gpu-runs: $(INSTALLED)
	$(VENV) recipes/queue/run.py $(WORK) --plan recipes/queue/$(PLAN).py --minutes $(MINUTES) --at-once $(AT_ONCE) --threads 2 --nice 0 $(ARGS)

trust: $(INSTALLED)
	OMP_NUM_THREADS=1 $(VENV) -m trust.run $(ARGS)

trust-full: $(INSTALLED)
	OMP_NUM_THREADS=1 $(VENV) -m trust.run --set full $(ARGS)
