# One command for each habit; `make help` lists them. The first one used sets everything up.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# Small matrix products are faster on one core than on two, and tests run beside each other; the
# many processes that tests start are quicker where compiled modules are kept.
ALONE := env OMP_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE=
WORKERS ?= 2
# Tests of one file stay together, and with them what they share, until one worker has no more.
PYTEST := $(ALONE) $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -q
FUZZ_SECONDS ?= 60

.DEFAULT_GOAL := help

.PHONY: help
help:  ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

.PHONY: demo
demo: $(INSTALLED)  ## learn digits from noisy judgements, by every method (a minute, once set up)
	$(ALONE) $(BIN)/likewise demo

.PHONY: test
test: $(INSTALLED)  ## the tests, less the slow ones
	$(PYTEST)

.PHONY: test-all
test-all: $(INSTALLED)  ## all tests
	$(PYTEST) -m ''

.PHONY: coverage
coverage: $(INSTALLED)  ## the tests, and which lines they reach
	$(PYTEST) --cov=likewise --cov-report=term-missing:skip-covered

.PHONY: check
check: $(INSTALLED)  ## formatting, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

.PHONY: format
format: $(INSTALLED)  ## format and mend what can be mended by itself
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: bench
bench: $(INSTALLED)  ## speed and memory on this machine, as ratios within one run
	$(BIN)/python benchmarks/pairwise_loss.py
	$(BIN)/python benchmarks/judgements.py
	$(BIN)/python benchmarks/pair_fit.py
	$(BIN)/python benchmarks/small_fit.py
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/fit_growth.py

.PHONY: digits
digits: $(INSTALLED)  ## the digits table of the README, anew (some minutes)
	$(ALONE) $(BIN)/python benchmarks/digits.py

.PHONY: fuzz
fuzz: $(INSTALLED)  ## malformed input for FUZZ_SECONDS
	FUZZ_SECONDS=$(FUZZ_SECONDS) $(BIN)/python -m fuzz

.PHONY: mutate
mutate: $(INSTALLED)  ## would the tests notice a mistake? (some minutes)
	$(BIN)/python tools/mutate.py

.PHONY: audit
audit: $(INSTALLED)  ## known vulnerabilities in the pinned dependencies
	$(BIN)/pip-audit --strict --disable-pip --no-deps -r constraints.txt

# PyTorch comes in several builds (CUDA, CPU), each with files and hashes of its own, and with other
# packages behind it: the developers' lock leaves it to constraints.txt.
NOT_HASHED := torch triton cuda-bindings cuda-pathfinder cuda-toolkit nvidia-cublas \
  nvidia-cuda-cupti nvidia-cuda-nvrtc nvidia-cuda-runtime nvidia-cudnn-cu13 nvidia-cufft \
  nvidia-cufile nvidia-curand nvidia-cusolver nvidia-cusparse nvidia-cusparselt-cu13 \
  nvidia-nccl-cu13 nvidia-nvjitlink nvidia-nvshmem-cu13 nvidia-nvtx
COMPILE := $(BIN)/uv pip compile pyproject.toml -c constraints.txt --generate-hashes --universal \
  --python-version 3.11.0 --no-emit-index-url --no-emit-find-links --no-annotate \
  --custom-compile-command "make lock" --quiet

.PHONY: lock
lock: $(INSTALLED)  ## both locks anew: the same versions, with the hashes of their files
	$(BIN)/python -m pip install --quiet uv
	$(COMPILE) --extra all -o requirements.lock
	$(COMPILE) --extra dev $(addprefix --no-emit-package ,$(NOT_HASHED)) -o requirements-dev.lock

.PHONY: docs
docs: $(INSTALLED)  ## the documentation, in site/
	$(BIN)/mkdocs build --strict

.PHONY: clean
clean:  ## remove what was made, but not runs/ and not the environment
	rm -rf build dist site htmlcov mutants .coverage* .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(INSTALLED): pyproject.toml constraints.txt requirements-dev.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Likewise needs Python 3.11 or newer: make PYTHON=python3.12 ..." >&2; exit 2; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) --require-hashes --no-deps -r requirements-dev.lock
	$(PIP) --no-build-isolation -c constraints.txt -e '.[dev]'
	touch $@
