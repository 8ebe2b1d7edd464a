# Everything happens in virtual environments that this file makes: .venv for the project, .venv-hudi for real Apache
# Hudi (another PySpark), which tests and benchmarks ask as a separate process, .venv-spark35 for the project on the
# oldest PySpark that it runs on (that of .venv-hudi), and .venv-others for other libraries that benchmarks run. The Rust
# program that calls hudi-rs is built in artifacts.

PYTHON ?= python3
VENV := .venv
PEER_VENV := .venv-hudi
OLD_VENV := .venv-spark35
OTHERS_VENV := .venv-others
# Releases of Hudi before 0.15, for tests that are marked long, run on the Sparks that their bundles are for.
OLD_HUDI_VENVS := .venv-hudi-31 .venv-hudi-32
BIN := $(VENV)/bin
PEER_PYSPARK := pyspark>=3.5.3,<3.6
# PySpark 3.5 imports distutils, which Python 3.12 no longer has and setuptools stands in for.
OLD_EXTRAS := 'pandas>=2.2,<3' 'setuptools<81'
# dbt runs on PySpark 3 only, and from 1.12 on it downloads a part of itself from outside the package index.
DBT := 'dbt-core>=1.10,<1.12' 'dbt-spark>=1.10,<1.12'
SCRATCH ?= $(CURDIR)/artifacts/against_hudi
ROWS ?= 2000000
HAVE_JAVA := $(shell command -v java 2>/dev/null)
comma := ,
# The stamp says what was installed, so that a Java that comes later brings PySpark with it.
DEMO_EXTRAS := $(if $(HAVE_JAVA)$(JAVA_HOME),all$(comma)demo,demo)
DEMO_MADE := $(VENV)/.made-demo$(if $(HAVE_JAVA)$(JAVA_HOME),-spark)
KEEP ?=
MUTANTS ?=
# Histories of several writers: how many, for how long at most, and the first seed (any number; new each time); then how
# many with Apache Hudi among the writers.
N ?= 10000
MINUTES ?= 240
SEED ?=
BESIDE_HUDI ?= 200
# Histories of the simulated world: ten for each of the others; and minutes for all orders of each pair of its actors.
SIMULATED ?= $(shell expr $(N) \* 10)
PAIR_MINUTES ?= 20
ON_SERVERS ?= 100
# Writes on a Spark cluster that a fault meets.
KILLS ?= 500
# tests/support/lots.py deals the tests to them.
PROCESSES ?= --numprocesses 2
# Many tests wait for files, locks and servers for a fifth of their time. Those of the smoke are of JVMs, which do not.
CHECK_PROCESSES ?= --numprocesses 3
REST_PROCESSES ?= --numprocesses 3
# COVERAGE=1 measures which lines the tests run, in all their processes; make coverage reports it.
COVERAGE ?=
PYTEST = $(if $(COVERAGE),-m coverage run,) -m pytest

# Tests start some hundred Python processes; without kept bytecode each compiles every module again, for half a second.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup peers servers built-servers check smoke test test-rest test-full coverage durations mutants test-long soak scale lint \
  docs demo bench bench-hudi bench-others old-hudi clean check-python

# uv needs a third of the time of pip. pip does it where uv cannot: with a mirror that only pip is configured for, say.
# $(1) is the environment, $(2) what it gets.
define install
	@test -x $(1)/bin/python || $(PYTHON) -m venv $(1)
	@{ $(1)/bin/python -m pip install --quiet uv && $(1)/bin/uv pip install --quiet --python $(1)/bin/python $(2); } \
	  || $(1)/bin/python -m pip install --quiet $(2)
endef

help:
	@echo 'make setup       make $(VENV), $(PEER_VENV) and $(OLD_VENV)'
	@echo 'make check       lint, types, and the tests of one process: no JVM, no server, no slow test'
	@echo 'make test        the same, and one test of each contract with Spark, real Apache Hudi, servers and faults'
	@echo 'make test-full   all tests, with a report of the lines that make test runs; make test-rest: those that make test leaves out'
	@echo 'make test-long   all tests with more examples, and more lives of tables, releases and index types of each kind'
	@echo 'make mutants     small mistakes in the product, and the tests that notice them; MUTANTS=--near-only asks fewer tests'
	@echo 'make durations   all tests, and their durations into tests/support/durations.txt'
	@echo 'make old-hudi    environments for releases of Hudi before 0.15, which test-long makes, too'
	@echo 'make soak        random histories of several writers with faults: N=$(N), MINUTES=$(MINUTES), SEED=first seed, and SIMULATED=$(SIMULATED)'
	@echo 'make scale       $(KILLS) faults on a Spark cluster; 100 000 file groups, skew, S3, memory, record index, Hudi beside'
	@echo 'make demo        load, change and query a year of flights; KEEP=folder leaves the table there'
	@echo 'make lint        ruff, codespell and mypy'
	@echo 'make docs        build the documentation site in artifacts/site'
	@echo 'make bench       micro-benchmarks (asv)'
	@echo 'make bench-hudi  hudi_fast against Apache Hudi: ROWS=$(ROWS), SCRATCH=folder for data'
	@echo 'make bench-others  hudi_fast against hudi-rs (with cargo and protoc), delta-rs, Delta Lake and Iceberg'
	@echo 'make clean       remove environments, caches and data that this file made'

setup: $(VENV)/.made-dev $(PEER_VENV)/.made $(OLD_VENV)/.made

check-python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "hudi_fast needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>/dev/null || echo 'not there'). Try: make PYTHON=python3.11 $(MAKECMDGOALS)" >&2; \
	  exit 1; }

# Order-only: the check runs each time, and makes nothing out of date.
$(VENV)/.made-dev: pyproject.toml | check-python
	$(call install,$(VENV),--editable '.[dev]')
	@touch $@ $(VENV)/.made-demo $(VENV)/.made-demo-spark

$(DEMO_MADE): pyproject.toml | check-python
	$(call install,$(VENV),--editable '.[$(DEMO_EXTRAS)]')
	@touch $@

# setuptools: PySpark 3.5 imports distutils, which Python 3.12 no longer has.
$(PEER_VENV)/.made: Makefile | check-python
	$(call install,$(PEER_VENV),'$(PEER_PYSPARK)' setuptools)
	@touch $@

# PySpark is that of the other environment: it takes a minute to install. Python 3.12 needs setuptools for it.
$(OLD_VENV)/.made: Makefile pyproject.toml | check-python $(PEER_VENV)/.made
	$(call install,$(OLD_VENV),$(OLD_EXTRAS) --editable .)
	@$(PYTHON) -c 'import glob, os; \
	  path = lambda venv: os.path.abspath(glob.glob(venv + "/lib/python3*/site-packages")[0]); \
	  open(path("$(OLD_VENV)") + "/pyspark.pth", "w").write(path("$(PEER_VENV)") + "\n")'
	@touch $@

$(OLD_VENV)/.made-dbt: $(OLD_VENV)/.made
	$(call install,$(OLD_VENV),$(DBT))
	@touch $@

peers: $(PEER_VENV)/.made $(OLD_VENV)/.made servers

servers: $(VENV)/.made-dev $(PEER_VENV)/.made
	@$(BIN)/python -m tests.servers.prepare

built-servers: servers
	@$(BIN)/python -m tests.servers.prepare --build

coverage:
	@$(BIN)/python -m coverage combine --quiet
	@$(BIN)/python -m coverage html --quiet
	@$(BIN)/python -m coverage report --skip-covered --sort=cover | tee artifacts/coverage/report.txt

lint: $(VENV)/.made-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell hudi_fast kernels docs benchmarks demo *.md
	$(BIN)/mypy

check: lint
	$(BIN)/python $(PYTEST) $(CHECK_PROCESSES) --tier check

# Environments are made side by side; real Hudi and the servers are fetched while the tests run that need neither.
test:
	@$(MAKE) --jobs=2 --no-print-directory check peers
	@$(MAKE) --no-print-directory smoke

smoke:
	$(BIN)/python $(PYTEST) $(PROCESSES) --tier smoke

test-rest: setup built-servers
	$(BIN)/python $(PYTEST) $(REST_PROCESSES) --tier rest

# Lines are those that the quicker tests run: each contract is among them, and tracing makes the others half as slow again.
# COVERAGE=1 traces all.
test-full:
	@rm -rf artifacts/coverage
	@$(MAKE) --jobs=2 --no-print-directory check peers COVERAGE=1
	@$(MAKE) --jobs=2 --no-print-directory smoke built-servers COVERAGE=1
	@$(MAKE) --no-print-directory test-rest COVERAGE=$(COVERAGE)
	@$(MAKE) --no-print-directory coverage

$(OLD_HUDI_VENVS:%=%/.made): .venv-hudi-%/.made: Makefile | check-python
	@test -x .venv-hudi-$*/bin/python || $(PYTHON) -m venv .venv-hudi-$*
	.venv-hudi-$*/bin/python -m pip install --quiet 'setuptools<81' wheel
	.venv-hudi-$*/bin/python -m pip install --quiet --no-build-isolation 'pyspark==$(if $(filter 31,$*),3.1.3,3.2.4)'
	@touch $@

# Scala 2.12.10 of Spark 3.1 cannot deserialise functions on Java 17; the library of Spark 3.2 can.
.venv-hudi-31/.scala: .venv-hudi-31/.made .venv-hudi-32/.made
	rm -f .venv-hudi-31/lib/python3*/site-packages/pyspark/jars/scala-library-*.jar
	cp .venv-hudi-32/lib/python3*/site-packages/pyspark/jars/scala-library-*.jar .venv-hudi-31/lib/python3*/site-packages/pyspark/jars/
	@touch $@

old-hudi: .venv-hudi-31/.scala $(OLD_HUDI_VENVS:%=%/.made)

mutants: setup built-servers
	$(BIN)/python -m tests.mutants.run --tier test,full --report artifacts/mutants.json $(MUTANTS)

test-long: setup lint built-servers old-hudi $(OLD_VENV)/.made-dbt
	$(BIN)/python -m pytest $(PROCESSES) --tier long

durations: setup built-servers
	@mkdir -p artifacts && rm -f artifacts/durations.txt
	$(BIN)/python -m pytest $(PROCESSES) --tier test --write-durations=artifacts/durations.txt
	$(BIN)/python -m pytest $(PROCESSES) --tier rest --write-durations=artifacts/durations.txt
	mv artifacts/durations.txt tests/support/durations.txt

soak: $(VENV)/.made-dev $(PEER_VENV)/.made
	$(BIN)/python -m tests.concurrency.soak --number $(N) --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))
	$(BIN)/python -m tests.simulation.soak --number $(SIMULATED) --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))
	$(BIN)/python -m tests.simulation.pairs --minutes $(PAIR_MINUTES)
	HISTORIES_BESIDE_HUDI=$(BESIDE_HUDI) $(BIN)/python -m pytest --tier long -s tests/concurrency/test_concurrency_jvm.py
	HISTORIES_ON_SERVERS=$(ON_SERVERS) $(BIN)/python -m pytest --tier long -s tests/concurrency/test_concurrency_locks.py

scale: setup
	$(BIN)/python -m tests.cluster.soak --number $(KILLS) $(if $(SEED),--seed $(SEED))
	$(BIN)/python -m benchmarks.scale.planning --groups 100000 --partitions 5000
	$(BIN)/python -m benchmarks.scale.record_index --keys 100000000
	$(BIN)/python -m benchmarks.scale.skew
	$(BIN)/python -m benchmarks.scale.requests --kinds COPY_ON_WRITE,MERGE_ON_READ
	$(BIN)/python -m benchmarks.scale.requests --sizes 10,100 --spark
	$(BIN)/python -m benchmarks.scale.requests --sizes 10,100 --hudi
	$(BIN)/python -m benchmarks.scale.requests --sizes 10 --storm 60
	$(BIN)/python -m benchmarks.scale.requests --sizes 10 --storm 60 --spark
	$(BIN)/python -m benchmarks.scale.large_partition
	$(BIN)/python -m benchmarks.scale.large_partition --rows 400000 --width 10000
	$(BIN)/python -m benchmarks.scale.large_partition --rows 6000000 --width 40
	$(BIN)/python -m benchmarks.scale.larger_than_memory
	$(BIN)/python -m benchmarks.scale.cluster

demo: $(DEMO_MADE)
	$(BIN)/python demo/flights.py $(if $(KEEP),--keep '$(KEEP)')

# The variable turns off an advertisement of the theme.
docs: $(VENV)/.made-dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --site-dir artifacts/site

bench: $(VENV)/.made-dev
	$(BIN)/asv machine --yes
	$(BIN)/asv run --python=same --quick --show-stderr

bench-hudi: setup
	$(BIN)/python benchmarks/against_hudi/run.py --scratch $(SCRATCH) --rows $(ROWS)

$(OTHERS_VENV)/.made: Makefile | check-python
	@test -x $(OTHERS_VENV)/bin/python || $(PYTHON) -m venv $(OTHERS_VENV)
	$(OTHERS_VENV)/bin/python -m pip install --quiet 'deltalake==1.6.6' pyarrow
	@touch $@

bench-others: setup $(OTHERS_VENV)/.made
	$(BIN)/python benchmarks/against_hudi/others.py --scratch $(SCRATCH) --rows $(ROWS)

clean:
	rm -rf $(VENV) $(PEER_VENV) $(OLD_VENV) $(OTHERS_VENV) $(OLD_HUDI_VENVS) artifacts build dist kernels/_compiled *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .benchmarks
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
