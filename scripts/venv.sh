#!/usr/bin/env bash
# Makes the virtual environment, or brings it up to date, from the hashed requirements that are named:
#
#   scripts/venv.sh FOLDER demo|dev|bench
#
# A second call with nothing changed does nothing.
set -euo pipefail
cd "$(dirname "$0")/.."

VENV=$1 WHAT=$2
REQUIREMENTS=requirements/$WHAT.txt
STAMP=$VENV/.installed-$WHAT

say() { printf 'environment: %s\n' "$*" >&2; }

find_python() {
  local candidate
  for candidate in ${PYTHON:-} python3.11 python3.13 python3.12 python3; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
      command -v "$candidate"
      return
    fi
  done
  say "no Python 3.11 or later found. Next: install one, or name it: make PYTHON=/path/to/python3"
  exit 1
}

make_venv() {
  local python
  python=$(find_python)
  if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then # Debian keeps these in a package of their own
    if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
      say "$python cannot make virtual environments. Next: install Debian's python3-venv, or your system's like"
      exit 1
    fi
    say "installing Debian's python3-venv"
    apt-get update -qq >/dev/null
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv >/dev/null </dev/null
  fi
  say "making $VENV with $("$python" --version)"
  "$python" -m venv "$VENV"
}

fingerprint() { cat "$REQUIREMENTS" pyproject.toml "$0" | sha256sum; }

if [ -x "$VENV/bin/python" ] && [ "$(cat "$STAMP" 2>/dev/null)" = "$(fingerprint)" ]; then
  exit 0
fi
[ -x "$VENV/bin/python" ] || make_venv
say "installing $REQUIREMENTS"
export PIP_DISABLE_PIP_VERSION_CHECK=1
"$VENV/bin/python" -m pip install --quiet --no-input --require-hashes -r "$REQUIREMENTS"
"$VENV/bin/python" -m pip install --quiet --no-input --no-deps --no-build-isolation -e .
fingerprint >"$STAMP"
