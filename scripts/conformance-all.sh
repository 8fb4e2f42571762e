#!/usr/bin/env bash
# The conformance suite on every engine, then what only a cluster can show, with the Python that is named.
# Both run even if the first one fails.
set -uo pipefail
cd "$(dirname "$0")/.."

export PYTHONPATH="src:."
failed=0
scripts/libfaketime.sh || failed=1
"$1" -m tests.conformance.everywhere || failed=1
"$1" -m pytest -m galera tests/galera || failed=1
exit $failed
