# make demo   set up and watch it work, on SQLite, in about a minute; KEEP=1 leaves it running
# make check  before each commit: lint, types, import contracts, unit tests, store tests on SQLite
# make test   everything but a cluster, on every engine; installs and starts what it needs
# make kill   N seeds (20) at every boundary where a process can die
# make galera  a cluster of three nodes for the tests, in var/galera; `scripts/galera.sh down` stops it
# make mysql  the tests of the MySQL wire on a MySQL of Debian's unstable suite, which is unpacked and not installed
# make conformance-all  the conformance suite on every engine, and on a cluster whose nodes come to harm; CI does both
# make bench  measure, and write var/bench.json
# make snapshots   write the SQL of every statement anew, for review
# make lock   resolve the dependencies anew

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help demo check test lint types imports kill galera mysql conformance-all bench snapshots lock clean venv-demo venv-dev venv-bench

VENV ?= .venv
BIN := $(VENV)/bin
KEEP ?=
N ?= 20
UV ?= uv

help:
	@sed -n 's/^# //p' Makefile | head -10

demo: venv-demo
	$(BIN)/doonce demo $(if $(filter-out 0,$(KEEP)),--keep)

check: lint types imports
	$(BIN)/python -m pytest -q -n 2 -m "not postgresql and not mariadb" $(wildcard tests/unit tests/store)

test: lint types imports
	scripts/postgres.sh run scripts/mariadb.sh run scripts/tests.sh $(BIN)/python

lint: venv-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: venv-dev
	$(BIN)/mypy

imports: venv-dev
	$(BIN)/lint-imports --no-logo

kill: venv-dev
	scripts/postgres.sh run scripts/mariadb.sh run $(BIN)/python -m pytest -m kill --kill-seeds $(N) tests

galera:
	scripts/galera.sh up

mysql: venv-dev
	scripts/libfaketime.sh
	scripts/mysql.sh run $(BIN)/python -m pytest -m "mariadb and not postgresql" \
		tests/store tests/e2e tests/process tests/conformance

conformance-all: venv-dev
	scripts/postgres.sh run scripts/mariadb.sh run scripts/galera.sh run scripts/conformance-all.sh $(BIN)/python

bench: venv-bench
	mkdir -p var
	scripts/postgres.sh run scripts/mariadb.sh run $(BIN)/python -m benchmarks

snapshots: venv-dev
	PYTHONPATH=src:. $(BIN)/python -m tests.store.db.snapshot_sql

venv-demo venv-dev venv-bench: venv-%:
	@scripts/venv.sh $(VENV) $*

COMPILE = $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-annotate --no-header
lock:
	$(COMPILE) $(UPGRADE) pyproject.toml requirements/build.in --extra test -o requirements/dev.txt
	$(COMPILE) pyproject.toml -c requirements/dev.txt -o requirements/lock.txt
	$(COMPILE) pyproject.toml requirements/build.in --extra demo -c requirements/dev.txt -o requirements/demo.txt
	$(COMPILE) pyproject.toml requirements/build.in --extra bench -c requirements/dev.txt -o requirements/bench.txt

clean:
	rm -rf $(VENV) var dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
