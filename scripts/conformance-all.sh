#!/usr/bin/env bash
# The conformance suite on every engine, the application's tables at a node of a cluster, then what only a cluster can
# show, with the Python that is named. All of it runs even if a part fails.
set -uo pipefail
cd "$(dirname "$0")/.."

export PYTHONPATH="src:."
failed=0
scripts/libfaketime.sh || failed=1
"$1" -m tests.conformance.everywhere || failed=1
DOONCE_TEST_MARIADB=${DOONCE_TEST_GALERA%% *} "$1" -m pytest -m mariadb tests/store/runtime || failed=1
"$1" -m pytest -m galera tests/galera || failed=1
exit $failed
