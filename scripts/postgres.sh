#!/usr/bin/env bash
# A private, throw-away PostgreSQL for the tests: loopback only, its own port and data, durable as in production.
#
#   scripts/postgres.sh run COMMAND...   run a command with DOONCE_TEST_POSTGRES set, and stop what was started
#   scripts/postgres.sh up | url | down  the same by hand
#
# A server named by DOONCE_TEST_POSTGRES is used as it is, and left alone.
set -euo pipefail

ROOT=$(cd "$(dirname "$0")/.." && pwd)
STATE="$ROOT/var/postgres"  # holds the data directory's path and the server's URL

say() { printf 'postgres: %s\n' "$*" >&2; }

. "$ROOT/scripts/debian.sh"

# The folder of the newest server's programs, or nothing.
binaries() {
  local folder
  for folder in /usr/lib/postgresql/*/bin /usr/pgsql-*/bin "$(dirname "$(readlink -f "$(command -v initdb)")")"; do
    if [ -x "$folder/initdb" ] && [ -x "$folder/postgres" ]; then echo "$folder"; fi
  done | sort -V | tail -n 1
}

install_server() {
  [ -z "$(binaries)" ] || return 0
  needs_debian "no server's programs found" \
    "install PostgreSQL 15 or later, or set DOONCE_TEST_POSTGRES to the URL of a server."
  say "installing the server from Debian's packages"
  local settings=/etc/postgresql-common/createcluster.conf
  if [ ! -e "$settings" ]; then # the package would otherwise start a server of its own
    mkdir -p "${settings%/*}"
    echo "create_main_cluster = false" >"$settings"
  fi
  install_packages -o Dpkg::Options::=--force-confold postgresql
}

# PostgreSQL refuses to run as root.
unprivileged() {
  if [ "$(id -u)" != 0 ]; then "$@"; else runuser -u "$(server_user)" -- "$@"; fi
}

server_user() {
  if getent passwd postgres >/dev/null; then echo postgres; else echo nobody; fi
}

free_port() {
  local ask='import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
  python3.11 -c "$ask" 2>/dev/null || python3 -c "$ask"
}

up() {
  install_server
  local bin data port password
  bin=$(binaries)
  data=$(mktemp -d "${TMPDIR:-/tmp}/doonce-postgres.XXXXXX")
  mkdir -p "$STATE"
  echo "$data" >"$STATE/data"
  [ "$(id -u)" != 0 ] || chown "$(server_user)" "$data"
  password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  # shellcheck disable=SC2016  # the inner shell expands them, as the other user
  printf '%s\n' "$password" | unprivileged sh -c 'umask 077 && cat >"$1/password"' - "$data"
  (
    cd "$data"
    unprivileged "$bin/initdb" -D "$data/data" -U doonce --pwfile="$data/password" --auth=scram-sha-256 \
      -E UTF8 --locale=C.UTF-8 >"$data/initdb.log" 2>&1 || { cat "$data/initdb.log" >&2; exit 1; }
    unprivileged rm "$data/password"
  )
  port=$(free_port)
  unprivileged sh -c 'cat >>"$1/data/postgresql.conf"' - "$data" <<CONF
listen_addresses = '127.0.0.1'
port = $port
unix_socket_directories = ''
fsync = on
full_page_writes = on
synchronous_commit = on
max_connections = 200
shared_buffers = 256MB
max_wal_size = 4GB
log_min_messages = fatal
CONF
  (umask 077 && echo "postgresql://doonce:$password@127.0.0.1:$port/postgres" >"$STATE/url")
  if ! (cd "$data" && unprivileged "$bin/pg_ctl" -D "$data/data" -l "$data/server.log" -w start >/dev/null); then
    cat "$data/server.log" >&2
    down
    exit 1
  fi
}

down() {
  local data=/nowhere
  [ ! -s "$STATE/data" ] || data=$(cat "$STATE/data")
  if [ -s "$data/data/postmaster.pid" ]; then
    (cd "$data" && unprivileged "$(binaries)/pg_ctl" -D "$data/data" -m fast -w stop >/dev/null) || say "did not stop"
  fi
  rm -rf "$data" "$STATE"
}

is_up() {
  [ -s "$STATE/data" ] && [ -s "$(cat "$STATE/data")/data/postmaster.pid" ]
}

case ${1:-} in
up)
  if ! is_up; then down; up; fi
  cat "$STATE/url"
  ;;
url) cat "$STATE/url" ;;
down) down ;;
run)
  shift
  if [ -z "${DOONCE_TEST_POSTGRES:-}" ]; then
    STATE=$(mktemp -d) # of this run alone: another one beside it has its own server
    trap down EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    up
    DOONCE_TEST_POSTGRES=$(cat "$STATE/url")
    export DOONCE_TEST_POSTGRES
  fi
  "$@"
  ;;
*)
  sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
  exit 2
  ;;
esac
