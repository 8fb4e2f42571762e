#!/usr/bin/env bash
# Every test but those of a cluster, with the Python that is named: two at a time those that make their own database, one
# by one the others. Both parts run even if the first one fails; the last line is pytest's.
set -uo pipefail
cd "$(dirname "$0")/.."

python=$1
failed=0
scripts/libfaketime.sh || failed=1 # without it what needs other clocks fails, and is not left out

# One process can have all of them, as that of `make kill` does.
collected=$("$python" -m pytest -q --collect-only tests) || { tail -30 <<<"$collected" && failed=1; }

beside=(tests/unit)
[ ! -d tests/store ] || beside+=(tests/store)
"$python" -m pytest -n 2 "${beside[@]}" || failed=1

# What starts processes and waits for them, bounded.
others=()
for folder in tests/*/; do
  case $folder in
  tests/unit/ | tests/store/ | tests/galera/) ;;
  *) [ -z "$(find "$folder" -name 'test_*.py' -print -quit)" ] || others+=("$folder") ;;
  esac
done
if [ ${#others[@]} -gt 0 ]; then
  "$python" -m pytest "${others[@]}" || failed=1
fi
exit $failed
