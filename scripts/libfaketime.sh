#!/usr/bin/env bash
# Installs libfaketime, by which tests give processes and servers clocks of their own, unless it is there.
set -euo pipefail

say() { printf 'libfaketime: %s\n' "$*" >&2; }

find_library() { find /usr/lib /usr/lib64 /usr/local/lib -path '*/faketime/libfaketime.so.1' 2>/dev/null | head -n 1; }

[ -z "$(find_library)" ] || exit 0
if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
  say "it is not on this machine, and only root on Debian can install it."
  say "Next: install libfaketime, or your system's like."
  exit 1
fi
say "installing Debian's package"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq >/dev/null
apt-get install -y -qq --no-install-recommends libfaketime tzdata >/dev/null </dev/null
