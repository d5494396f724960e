# One command per thing a newcomer wants. Every target sets up what it needs; a second run is quick.
#
#   make demo        sixteen stories on a development chain of its own; writes build/demo/report.json
#   make test        lint, contract tests, Python tests          make test-heavy   what takes minutes; goes on where it stopped
#   make test-gpu    the kernels for NVIDIA GPUs (installs Triton, 200 MB; without a GPU they are interpreted)
#   make bench       the performance table                       make lint         only the linters
#   make campaign    every fault at every stage upon every party, hours; goes on where it stopped; writes its table
#   make studies     every study and its report, in build/sim, and docs/economics.md; goes on where it stopped
#   make contracts   compile contracts/ to build/contracts/out   make clean        remove all that make made
#   make coverage-suite  models of seven libraries captured and compared; writes docs/models.md; goes on where it stopped
#   make lanes-study  lanes beside one machine and all-reduce, and docs/lanes.md; hours, goes on where it was stopped
#   make mutation    small faults planted in games and trees, and docs/mutation.md; hours, goes on where it was stopped
#   make soak        a hundred tasks played by nodes, their memory, files and questions; two hours, goes on where it was stopped
#   make release     sdist, wheel, lock, contracts, SHA-256 sums    make licences     write docs/licences.md
#
# Needed: Python 3.11, Node 20 with npm. The npm packages of forge, anvil and cast are for x86-64 Linux;
# elsewhere have those three on PATH (version 1.7.1), or name them: make test FORGE=/path/to/forge ANVIL=...

PYTHON ?= $(shell command -v python3.11 || command -v python3)
# Test processes side by side, each with an anvil at times and with torch. More than two cores are: they wait for blocks.
JOBS ?= 4
# Heavy ones compute: more than there are cores only make each of them slower.
HEAVY_JOBS ?= 2
PYTEST_ARGS ?=
CAMPAIGN_ARGS ?=
MODELS_ARGS ?=
MUTATION_ARGS ?=

BIN := .venv/bin
PYTHON_DIRS := $(wildcard protocol solver verifier assay sim benchmarks examples scripts tests)
# The native programs, never the launchers in node_modules/.bin: those exit 0 on every failure and leave the real
# process running when they are killed.
# Named by platform, not by what lies in node_modules now: set-up fills it after this line has been read.
native = $(if $(filter Linux-x86_64,$(shell uname -s)-$(shell uname -m)),$(CURDIR)/node_modules/@foundry-rs/$(1)-linux-amd64/bin/$(1),$(1))
FORGE ?= $(call native,forge)
ANVIL ?= $(call native,anvil)
CAST ?= $(call native,cast)
export FORGE ANVIL CAST
# forge is not to ask the network for anything here.
export FOUNDRY_DISABLE_NIGHTLY_WARNING := 1

# Before a step that says nothing for more than ten seconds: what it does, and what is to be expected of it.
say = @echo "$(1)"

PYTHON_READY := .venv/.installed
NODE_READY := node_modules/.installed
MODELS_READY := .venv/.models-installed
STORAGE_READY := .venv/.storage-installed
NOTEBOOK_READY := .venv/.notebook-installed
TRITON_READY := .venv/.triton-installed
FORMAL_READY := build/formal/.installed
MUTATION_READY := build/mutation/.installed
CONTRACTS_CONFIGURED := build/contracts/.configured
# What the Python package knows of the contracts, from what forge has compiled.
CONTRACT_DATA := "$(PYTHON)" scripts/contract_data.py

.DELETE_ON_ERROR:
.PHONY: help setup contracts demo test test-heavy lint lint-python lint-contracts lint-docs test-contracts test-python test-gpu coverage-suite bench campaign mutation soak studies lanes-study release licences clean

help:
	@sed -n '2,16s/^# \{0,1\}//p' Makefile

setup: $(PYTHON_READY) $(NODE_READY)

.venv/bin/python:
	"$(PYTHON)" -c 'import sys; v = sys.version_info[:2]; sys.exit(None if v == (3, 11) else f"Python 3.11 is needed, this is {v}: make PYTHON=/path/to/python3.11")'
	$(call say,A virtual environment in .venv)
	"$(PYTHON)" -m venv .venv

# The lock first, at exact versions; then what must go in without its dependencies; then this repository.
$(PYTHON_READY): requirements.lock requirements-nodeps.lock pyproject.toml setup.py $(wildcard protocol/numerics/kernels/native/* protocol/commitments/native/*) | .venv/bin/python
	@$(BIN)/python -c 'import sys; v = sys.version_info[:2]; sys.exit(None if v == (3, 11) else f"Python 3.11 is needed, .venv is of {v}: make clean, or remove .venv")'
	$(call say,Python packages: torch and about a hundred others from requirements.lock; some minutes the first time)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements-nodeps.lock
	$(call say,This package: its kernels are compiled where there is a C++ compiler; about a minute)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

$(NODE_READY): package.json package-lock.json
	$(call say,npm packages: forge and anvil and the Solidity compiler and libraries; 240 MB unpacked)
	npm ci --no-audit --no-fund --loglevel=error
	touch $@

# What other settings have compiled is not told apart by name; so it goes when they change.
$(CONTRACTS_CONFIGURED): foundry.toml
	rm -rf build/contracts/cache build/contracts/out
	mkdir -p $(@D)
	touch $@

contracts: $(NODE_READY) $(CONTRACTS_CONFIGURED)
	$(call say,Contracts: compiled with the optimiser unless nothing has changed; up to two minutes)
	"$(FORGE)" build contracts/src
	$(CONTRACT_DATA)

demo: setup
	$(MAKE) --no-print-directory contracts
	$(BIN)/python -m examples.demo

lint: lint-python lint-contracts lint-docs

lint-python: $(PYTHON_READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy $(PYTHON_DIRS)

lint-contracts: $(NODE_READY)
	"$(FORGE)" fmt --check

# Every link between the documents leads somewhere.
lint-docs: $(PYTHON_READY)
	$(BIN)/mkdocs build --strict --quiet

# --sizes fails on a contract over EIP-170's limit; harnesses of the tests may exceed it.
test-contracts: $(NODE_READY) $(CONTRACTS_CONFIGURED)
	$(call say,Contracts and their tests: compiled with the optimiser unless nothing has changed; some minutes)
	"$(FORGE)" build --sizes contracts/src
	"$(FORGE)" build
	"$(FORGE)" test

test-python: setup
	$(CONTRACT_DATA)
	$(BIN)/pytest -n $(JOBS) --dist loadfile --no-loadscope-reorder $(PYTEST_ARGS)

# The linters beside forge: mypy and solc take one core each. Then the Python tests, which deploy what forge has compiled.
test:
	$(MAKE) --no-print-directory setup
	$(MAKE) --no-print-directory --jobs=2 --output-sync=line lint test-contracts
	$(MAKE) --no-print-directory test-python

# Not part of the lock: 700 MB unpacked, for code that only a GPU runs at speed. Its kernels are interpreted here.
$(TRITON_READY): $(PYTHON_READY)
	$(call say,Triton: 200 MB)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps triton==3.7.1
	touch $@

# Halmos and Slither, which pin packages that the project has in other versions: an environment of their own.
$(FORMAL_READY): tests/formal/requirements.txt
	"$(PYTHON)" -m venv build/formal/venv
	$(call say,Halmos and Slither in build/formal/venv; about a minute)
	build/formal/venv/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	touch $@

test-heavy: setup $(CONTRACTS_CONFIGURED) $(TRITON_READY) $(STORAGE_READY) $(NOTEBOOK_READY) $(FORMAL_READY)
	$(call say,Contracts and their tests: compiled with the optimiser unless nothing has changed; some minutes)
	"$(FORGE)" build
	$(CONTRACT_DATA)
	$(BIN)/pytest -m heavy -n $(HEAVY_JOBS) --dist load --resume=build/heavy-passed.list $(PYTEST_ARGS)

# Libraries of models, beside the lock: their own needs would bring CUDA's torch.
$(MODELS_READY): $(PYTHON_READY) tests/models/requirements.txt
	$(call say,Libraries of models from tests/models/requirements.txt; some minutes)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r tests/models/requirements.txt
	touch $@

# An S3 server and its client, beside the lock: moto's metadata asks for all services that it can play.
$(STORAGE_READY): $(PYTHON_READY) tests/storage/requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r tests/storage/requirements.txt
	touch $@

# What runs notebooks, and TensorBoard, beside the lock: forty packages for one test each.
$(NOTEBOOK_READY): $(PYTHON_READY) tests/notebook/requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r tests/notebook/requirements.txt
	touch $@

# MODELS_ARGS: --jobs N, words of the entries to be played.
coverage-suite: setup $(MODELS_READY)
	$(BIN)/python -m tests.models $(MODELS_ARGS)

test-gpu: setup $(TRITON_READY)
	$(BIN)/pytest tests/gpu tests/same_bits -m gpu $(PYTEST_ARGS)

bench: setup
	$(MAKE) --no-print-directory contracts
	$(BIN)/python -m benchmarks

# CAMPAIGN_ARGS: --jobs N, --any-commit to go on after a change, words of the cases to be played.
campaign: setup
	$(MAKE) --no-print-directory contracts
	$(BIN)/python -m tests.campaign $(CAMPAIGN_ARGS)

# What proposes mutants, which pins packages that the project has in other versions.
$(MUTATION_READY): tests/mutation/requirements.txt
	"$(PYTHON)" -m venv build/mutation/venv
	$(call say,cosmic-ray and Slither in build/mutation/venv; about a minute)
	build/mutation/venv/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	touch $@

# MUTATION_ARGS: a language. Both at once, one a terminal, take two cores.
mutation: setup $(MUTATION_READY)
	$(MAKE) --no-print-directory contracts
	$(BIN)/python -m tests.mutation $(MUTATION_ARGS)

soak: setup
	$(MAKE) --no-print-directory contracts
	$(BIN)/python -m benchmarks.soak --record

# --fresh: what other code has played is played anew; rows of the same question stay.
studies: $(PYTHON_READY)
	$(BIN)/sim run all --fresh --strict
	$(BIN)/python -m sim.economics_page

# Of what is committed; the same bytes each time.
release: setup
	$(BIN)/python scripts/release.py

# Goes on where it was stopped.
lanes-study: setup
	$(BIN)/python -m benchmarks.lanes

licences: setup
	$(BIN)/python scripts/licences.py

clean:
	rm -rf build .venv node_modules .pytest_cache .mypy_cache .ruff_cache .hypothesis *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	rm -f protocol/numerics/kernels/_native*.so protocol/commitments/_native*.so protocol/chain/contracts/*.json
