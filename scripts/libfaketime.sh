#!/usr/bin/env bash
# Installs libfaketime, by which tests give processes and servers clocks of their own, unless it is there.
set -euo pipefail

say() { printf 'libfaketime: %s\n' "$*" >&2; }

. "$(dirname "$0")/debian.sh"

find_library() { find /usr/lib /usr/lib64 /usr/local/lib -path '*/faketime/libfaketime.so.1' 2>/dev/null | head -n 1; }

[ -z "$(find_library)" ] || exit 0
needs_debian "it is not on this machine" "install libfaketime, or your system's like."
say "installing Debian's package"
install_packages libfaketime tzdata
