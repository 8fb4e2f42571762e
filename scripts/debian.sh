# For the scripts here that install Debian's packages; to be sourced. They have `say`.
# shellcheck shell=bash

# Ends the script unless packages can be installed: what is missing, and what to do about it.
needs_debian() {
  if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then return 0; fi
  say "$1, and only root on Debian can install it."
  say "Next: $2"
  exit 1
}

# Installs packages, without what they recommend. Options of apt-get may come first.
install_packages() {
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq >/dev/null
  apt-get install -y -qq --no-install-recommends "$@" >/dev/null </dev/null
}

# The same of packages that would otherwise start a server of their own. In a subshell, whose trap comes at every end.
install_unstarted() (
  policy=/usr/sbin/policy-rc.d
  if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
  fi
  install_packages "$@"
)
