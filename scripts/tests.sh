#!/usr/bin/env bash
# Every test, with the Python that is named: two at a time those that make their own database, one by one the others.
# Every part runs even if one before it fails; the last line is pytest's.
set -uo pipefail
cd "$(dirname "$0")/.."

python=$1
failed=0
others=()
for folder in tests/*/; do
  case $folder in
  tests/unit/ | tests/store/) ;;
  *) [ -z "$(find "$folder" -name 'test_*.py' -print -quit)" ] || others+=("$folder") ;;
  esac
done

scripts/libfaketime.sh || failed=1 # without it what needs other clocks fails, and is not left out

# What only a cluster can show, bounded; `make conformance-all` has the rest.
scripts/galera.sh run "$python" -m pytest tests/galera/test_certification.py tests/galera/test_conformance.py \
  tests/galera/test_clocks.py || failed=1

beside=(tests/unit)
[ ! -d tests/store ] || beside+=(tests/store)
"$python" -m pytest -n 2 "${beside[@]}" || failed=1
if [ ${#others[@]} -gt 0 ]; then
  "$python" -m pytest "${others[@]}" || failed=1
fi
exit $failed
