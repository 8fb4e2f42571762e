#!/usr/bin/env bash
# A private, throw-away MySQL for the tests: loopback only, its own port and data, durable as in production.
#
#   scripts/mysql.sh run COMMAND...   run a command with DOONCE_TEST_MARIADB set to it, and stop what was started
#   scripts/mysql.sh up | url | down  the same by hand
#
# Debian stable has no MySQL, and its unstable suite has. Nothing of that is installed: the packages, with all that they
# depend on, are unpacked beside the data, and the server is started through its own loader. Needs apt, and no root.
# The suite moves, so its version does too; `make test` has no part in it.
set -euo pipefail

ROOT=$(cd "$(dirname "$0")/.." && pwd)
STATE="$ROOT/var/mysql"            # holds the data directory's path and the server's URL
PACKAGES="$ROOT/var/mysql-packages" # what apt has fetched, kept for the next time
SUITE=sid
KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg
START_SECONDS=90

say() { printf 'mysql: %s\n' "$*" >&2; }

# Where this machine has Debian from, or nothing.
mirror() {
  apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' 'Label: Debian' 'Component: main' |
    sort -u | head -n 1
}

# Fetches the server's packages, and all that they need, with an apt that knows of nothing else.
fetch_packages() {
  local from
  if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null || [ ! -e "$KEYRING" ]; then
    say "apt, dpkg or Debian's keyring is missing."
    say "Next: set DOONCE_TEST_MARIADB to the URL of a MySQL server, and run the tests without this script."
    exit 1
  fi
  from=$(mirror)
  if [ -z "$from" ]; then
    say "apt knows no mirror of Debian. Next: apt-get update, as root."
    exit 1
  fi
  mkdir -p "$PACKAGES/state" "$PACKAGES/cache"
  : >"$PACKAGES/state/status" # nothing is installed, so everything is fetched
  echo "deb [signed-by=$KEYRING] $from $SUITE main" >"$PACKAGES/sources.list"
  cat >"$PACKAGES/apt.conf" <<CONF
Dir::Etc::sourcelist "$PACKAGES/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferences "/dev/null";
Dir::Etc::preferencesparts "/dev/null";
Dir::State "$PACKAGES/state";
Dir::State::status "$PACKAGES/state/status";
Dir::Cache "$PACKAGES/cache";
CONF
  [ "$(id -u)" != 0 ] || echo 'APT::Sandbox::User "root";' >>"$PACKAGES/apt.conf" # the folder may be closed to others
  (
    export APT_CONFIG="$PACKAGES/apt.conf"
    apt-get update -qq >/dev/null
    apt-get autoclean -qq >/dev/null
    apt-get install -y -qq --download-only --no-install-recommends mysql-server-core >/dev/null </dev/null
  )
}

unpack_server() {
  local package
  say "unpacking the server from Debian's $SUITE"
  for package in "$PACKAGES"/cache/archives/*.deb; do dpkg-deb --extract "$package" "$1"; done
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

# Runs the server by the libraries that it came with; this machine's are older.
server() {
  local system=$1/system loader libraries
  shift
  loader=$(find "$system/usr/lib" "$system/usr/lib64" -name 'ld-linux*.so.*' | head -n 1)
  libraries=$(find "$system/usr/lib" -name 'libc.so.6' -printf '%h\n' | head -n 1)
  unprivileged "$loader" --library-path "$libraries" "$system/usr/sbin/mysqld" --no-defaults \
    --basedir="$system/usr" --secure-file-priv=NULL "$@"
}

answers() {
  [ -s "$1/pid" ] && (exec 3<>"/dev/tcp/127.0.0.1/$2") 2>/dev/null
}

up() {
  local data port password server seconds=0
  fetch_packages
  data=$(mktemp -d "${TMPDIR:-/tmp}/doonce-mysql.XXXXXX")
  mkdir -p "$STATE"
  echo "$data" >"$STATE/data"
  unpack_server "$data/system"
  port=$(free_port)
  password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  (umask 077 && cat >"$data/first.sql") <<SQL
ALTER USER root@localhost ACCOUNT LOCK;
CREATE USER doonce@'127.0.0.1' IDENTIFIED BY '$password';
GRANT ALL PRIVILEGES ON *.* TO doonce@'127.0.0.1' WITH GRANT OPTION;
CREATE DATABASE doonce;
SQL
  [ "$(id -u)" != 0 ] || chown "$(server_user)" "$data" "$data/first.sql"
  if ! server "$data" --datadir="$data/data" --initialize-insecure --init-file="$data/first.sql" \
    --log-error-verbosity=1 >"$STATE/install.log" 2>&1; then
    cat "$STATE/install.log" >&2
    down
    exit 1
  fi
  rm "$data/first.sql"
  server "$data" --datadir="$data/data" --tmpdir="$data" --socket="$data/socket" --pid-file="$data/pid" --mysqlx=OFF \
    --bind-address=127.0.0.1 --port="$port" --skip-name-resolve --log-error="$data/server.log" \
    --max-connections=200 --innodb-buffer-pool-size=256M --innodb-flush-log-at-trx-commit=1 \
    --innodb-doublewrite=ON --sync-binlog=1 </dev/null >/dev/null 2>&1 &
  server=$!
  until answers "$data" "$port"; do
    if ! kill -0 "$server" 2>/dev/null || [ "$seconds" -ge "$START_SECONDS" ]; then
      cat "$data/server.log" >&2
      down
      exit 1
    fi
    sleep 1
    seconds=$((seconds + 1))
  done
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
  STATE=$(mktemp -d) # of this run alone: another one beside it has its own server
  trap down EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  up
  DOONCE_TEST_MARIADB=$(cat "$STATE/url")
  export DOONCE_TEST_MARIADB
  "$@"
  ;;
*)
  sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
  exit 2
  ;;
esac
