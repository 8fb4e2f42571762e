#!/usr/bin/env bash
# A private, throw-away MariaDB for the tests: loopback only, its own port and data, durable as in production.
#
#   scripts/mariadb.sh run COMMAND...   run a command with DOONCE_TEST_MARIADB set, and stop what was started
#   scripts/mariadb.sh up | url | down  the same by hand
#
# A server named by DOONCE_TEST_MARIADB is used as it is, and left alone.
set -euo pipefail

ROOT=$(cd "$(dirname "$0")/.." && pwd)
STATE="$ROOT/var/mariadb" # holds the data directory's path and the server's URL
START_SECONDS=60

say() { printf 'mariadb: %s\n' "$*" >&2; }

. "$ROOT/scripts/debian.sh"

# A program of the server, wherever the distribution has put it, or nothing.
program() {
  PATH="$PATH:/usr/sbin:/usr/local/sbin" command -v "$1" || true
}

install_server() {
  [ -z "$(program mariadbd)" ] || return 0
  needs_debian "no server's programs found" \
    "install MariaDB 10.11 or later, or set DOONCE_TEST_MARIADB to the URL of a server."
  say "installing the server from Debian's packages"
  install_unstarted mariadb-server
}

# The server refuses to run as root.
unprivileged() {
  if [ "$(id -u)" != 0 ]; then "$@"; else runuser -u "$(server_user)" -- "$@"; fi
}

server_user() {
  if getent passwd mysql >/dev/null; then echo mysql; else echo nobody; fi
}

free_port() {
  local ask='import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
  python3.11 -c "$ask" 2>/dev/null || python3 -c "$ask"
}

answers() {
  unprivileged "$(program mariadb-admin)" --no-defaults --socket="$1/socket" --user=root ping >/dev/null 2>&1
}

up() {
  install_server
  local data port password server
  data=$(mktemp -d "${TMPDIR:-/tmp}/doonce-mariadb.XXXXXX")
  mkdir -p "$STATE"
  echo "$data" >"$STATE/data"
  [ "$(id -u)" != 0 ] || chown "$(server_user)" "$data"
  port=$(free_port)
  password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  # A server that starts deletes the temporary tables that it finds: another's, if they shared a folder.
  unprivileged env TMPDIR="$data" "$(program mariadb-install-db)" --no-defaults --datadir="$data/data" --skip-test-db \
    --auth-root-authentication-method=normal >"$STATE/install.log" 2>&1 || { cat "$STATE/install.log" >&2; down; exit 1; }
  unprivileged "$(program mariadbd)" --no-defaults --datadir="$data/data" --tmpdir="$data" --socket="$data/socket" \
    --pid-file="$data/pid" --bind-address=127.0.0.1 --port="$port" --log-error="$data/server.log" \
    --skip-log-bin --max-connections=200 --innodb-buffer-pool-size=256M --innodb-flush-log-at-trx-commit=1 \
    --innodb-doublewrite=1 --character-set-server=utf8mb4 --collation-server=utf8mb4_bin \
    </dev/null >/dev/null 2>&1 &
  server=$!
  local seconds=0
  until answers "$data"; do
    if ! kill -0 "$server" 2>/dev/null || [ "$seconds" -ge "$START_SECONDS" ]; then
      cat "$data/server.log" >&2
      down
      exit 1
    fi
    sleep 1
    seconds=$((seconds + 1))
  done
  unprivileged "$(program mariadb)" --no-defaults --socket="$data/socket" --user=root <<SQL
CREATE USER doonce@'127.0.0.1' IDENTIFIED BY '$password';
GRANT ALL PRIVILEGES ON *.* TO doonce@'127.0.0.1' WITH GRANT OPTION;
CREATE DATABASE doonce;
SQL
  (umask 077 && echo "mysql://doonce:$password@127.0.0.1:$port/doonce" >"$STATE/url")
}

down() {
  local data=/nowhere
  [ ! -s "$STATE/data" ] || data=$(cat "$STATE/data")
  if [ -s "$data/pid" ]; then
    local server
    server=$(cat "$data/pid")
    kill "$server" 2>/dev/null || say "did not stop"
    while kill -0 "$server" 2>/dev/null; do sleep 0.2; done
  fi
  rm -rf "$data" "$STATE"
}

is_up() {
  [ -s "$STATE/data" ] && [ -s "$(cat "$STATE/data")/pid" ]
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
  if [ -z "${DOONCE_TEST_MARIADB:-}" ]; then
    STATE=$(mktemp -d) # of this run alone: another one beside it has its own server
    trap down EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    up
    DOONCE_TEST_MARIADB=$(cat "$STATE/url")
    export DOONCE_TEST_MARIADB
  fi
  "$@"
  ;;
*)
  sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
  exit 2
  ;;
esac
