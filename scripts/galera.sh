#!/usr/bin/env bash
# A private, throw-away MariaDB Galera cluster of three nodes for the tests: loopback only, durable as in production.
#
#   scripts/galera.sh run COMMAND...   run a command with DOONCE_TEST_GALERA set, and stop what was started
#   scripts/galera.sh up | urls | down the same by hand
#   scripts/galera.sh kill|stop|start|freeze|thaw|cut|mend N   do that to node N (1, 2 or 3) of a running cluster
#
# `start` with DOONCE_GALERA_AHEAD (such as +10m) gives the node a clock of its own, by libfaketime.
# DOONCE_TEST_GALERA is the nodes' URLs with a space between two. A command that `run` has started finds its cluster
# through DOONCE_GALERA_STATE. `cut` isolates a node at the group layer (gmcast.isolate): its clients still reach it.
set -euo pipefail

ROOT=$(cd "$(dirname "$0")/.." && pwd)
STATE=${DOONCE_GALERA_STATE:-$ROOT/var/galera} # holds the data directory's path, the ports and the nodes' URLs
NODES="1 2 3"
# A dead node is dropped after a few seconds instead of Galera's fifteen, so that a run with faults stays short.
SOON="evs.keepalive_period=PT0.3S;evs.inactive_check_period=PT0.3S;evs.suspect_timeout=PT2S;evs.inactive_timeout=PT4S"
START_SECONDS=90
STOP_SECONDS=30

say() { printf 'galera: %s\n' "$*" >&2; }

# A program of the server, wherever the distribution has put it, or nothing.
program() {
  PATH="$PATH:/usr/sbin:/usr/local/sbin" command -v "$1" || true
}

provider() {
  local path
  for path in /usr/lib/galera/libgalera_smm.so /usr/lib64/galera-4/libgalera_smm.so; do
    if [ -e "$path" ]; then echo "$path"; return; fi
  done
}

libfaketime() {
  find /usr/lib /usr/lib64 /usr/local/lib -path '*/faketime/libfaketime.so.1' 2>/dev/null | head -n 1 | grep . ||
    { say "libfaketime is missing. Next: scripts/libfaketime.sh"; return 1; }
}

install_servers() {
  if [ -n "$(program mariadbd)" ] && [ -n "$(provider)" ] && [ -n "$(program rsync)" ]; then return 0; fi
  if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
    say "mariadbd, Galera's library or rsync is missing, and only root on Debian can install them."
    say "Next: install mariadb-server, galera-4 and rsync."
    exit 1
  fi
  say "installing the servers from Debian's packages"
  local policy=/usr/sbin/policy-rc.d
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -qq >/dev/null
  if [ ! -e "$policy" ]; then # the package would otherwise start a server of its own
    trap 'rm -f /usr/sbin/policy-rc.d' RETURN
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
  fi
  apt-get install -y -qq --no-install-recommends mariadb-server galera-4 rsync iproute2 >/dev/null </dev/null
}

# The server refuses to run as root.
unprivileged() {
  if [ "$(id -u)" != 0 ]; then "$@"; else runuser -u "$(server_user)" -- "$@"; fi
}

server_user() {
  if getent passwd mysql >/dev/null; then echo mysql; else echo nobody; fi
}

# As many ports as are asked for, free at this moment, on one line.
free_ports() {
  local ask='import socket, sys
held = [socket.socket() for _ in range(int(sys.argv[1]))]
for one in held: one.bind(("127.0.0.1", 0))
print(*[one.getsockname()[1] for one in held])'
  python3.11 -c "$ask" "$1" 2>/dev/null || python3 -c "$ask" "$1"
}

data() { cat "$STATE/data"; }

# Four ports a node: for clients, for the group, for incremental and for whole state transfers.
port() {
  local node=$1 which=$2
  cut -d' ' -f$(((node - 1) * 4 + which)) "$STATE/ports"
}

as_root() {
  local node=$1
  unprivileged "$(program mariadb)" --no-defaults --socket="$(data)/$node/socket" --user=root -NB
}

synced() {
  [ "$(echo "SHOW STATUS LIKE 'wsrep_local_state_comment'" | as_root "$1" 2>/dev/null | cut -f2)" = Synced ]
}

# Whether a process runs; one that has ended, and that nobody has asked after, does not.
lives() {
  kill -0 "$1" 2>/dev/null && ! grep -qs '^State:[[:space:]]*Z' "/proc/$1/status"
}

is_running() {
  local pid_file
  pid_file="$(data)/$1/started"
  [ -s "$pid_file" ] && lives "$(cat "$pid_file")"
}

group() {
  local node joined=
  for node in $NODES; do joined="$joined,127.0.0.1:$(port "$node" 2)"; done
  echo "gcomm://${joined#,}"
}

# Starts a node and waits until it has all that the others have; with --wsrep-new-cluster it is the first one.
start() {
  local node=$1 home server seconds=0 user= clock=()
  shift
  home="$(data)/$node"
  if is_running "$node"; then say "node $node runs already"; return 0; fi
  rm -f "$home/started"
  [ "$(id -u)" != 0 ] || user="--user=$(server_user)"
  if [ -n "${DOONCE_GALERA_AHEAD:-}" ]; then
    clock=(env "LD_PRELOAD=$(libfaketime)" "FAKETIME=$DOONCE_GALERA_AHEAD" FAKETIME_DONT_FAKE_MONOTONIC=1 NO_FAKE_STAT=1)
  fi
  # As root it becomes its user by itself: a wrapper that waits for it would stop when it is frozen, and stay so.
  PATH="$PATH:/usr/sbin" "${clock[@]}" "$(program mariadbd)" --no-defaults $user --datadir="$home/data" \
    --socket="$home/socket" --pid-file="$home/pid" --bind-address=127.0.0.1 --port="$(port "$node" 1)" \
    --log-error="$home/server.log" --tmpdir="$home/tmp" --skip-name-resolve --max-connections=200 \
    --innodb-buffer-pool-size=64M --innodb-log-file-size=48M --innodb-flush-log-at-trx-commit=1 \
    --innodb-doublewrite=1 --innodb-autoinc-lock-mode=2 --binlog-format=ROW --performance-schema=OFF \
    --character-set-server=utf8mb4 --collation-server=utf8mb4_bin --wsrep-on=ON \
    --wsrep-provider="$(provider)" --wsrep-cluster-name=doonce --wsrep-cluster-address="$(group)" \
    --wsrep-node-name="node$node" --wsrep-node-address="127.0.0.1:$(port "$node" 2)" \
    --wsrep-node-incoming-address="127.0.0.1:$(port "$node" 1)" \
    --wsrep-sst-method=rsync --wsrep-sst-receive-address="127.0.0.1:$(port "$node" 4)" \
    --wsrep-provider-options="base_host=127.0.0.1;base_port=$(port "$node" 2);gmcast.listen_addr=tcp://127.0.0.1:$(port "$node" 2);ist.recv_addr=127.0.0.1:$(port "$node" 3);gcache.size=64M;$SOON" \
    "$@" </dev/null >/dev/null 2>&1 &
  server=$!
  echo "$server" >"$home/started" # at once: a node that is still joining has to be stopped as well
  until synced "$node"; do
    if ! lives "$server" || [ "$seconds" -ge $((START_SECONDS * 5)) ]; then
      tail -n 40 "$home/server.log" >&2
      say "node $node did not come up"
      return 1
    fi
    sleep 0.2
    seconds=$((seconds + 1))
  done
}

# Ends a node in an orderly way; a frozen or stuck one is killed after a while.
stop() {
  local node=$1 pid waited=0
  is_running "$node" || return 0
  pid=$(cat "$(data)/$node/started")
  kill -CONT "$pid" 2>/dev/null || true
  kill "$pid" 2>/dev/null || true
  while lives "$pid"; do
    if [ "$waited" -ge $((STOP_SECONDS * 5)) ]; then kill -KILL "$pid" 2>/dev/null || true; fi
    sleep 0.2
    waited=$((waited + 1))
  done
}

to_process() {
  local signal=$1 node=$2
  if ! is_running "$node"; then say "node $node is not running"; return 1; fi
  kill "-$signal" "$(cat "$(data)/$node/started")"
}

isolate() {
  echo "SET GLOBAL wsrep_provider_options = 'gmcast.isolate=$2'" | as_root "$1"
}

up() {
  install_servers
  local data node password
  data=$(mktemp -d "${TMPDIR:-/tmp}/doonce-galera.XXXXXX")
  mkdir -p "$STATE"
  echo "$data" >"$STATE/data"
  free_ports 12 >"$STATE/ports"
  for node in $NODES; do mkdir -p "$data/$node/tmp" "$data/$node/data"; done
  [ "$(id -u)" != 0 ] || chown -R "$(server_user)" "$data"
  unprivileged "$(program mariadb-install-db)" --no-defaults --datadir="$data/1/data" --skip-test-db \
    --auth-root-authentication-method=normal >"$STATE/install.log" 2>&1 || { cat "$STATE/install.log" >&2; down; exit 1; }
  start 1 --wsrep-new-cluster || { down; exit 1; }
  password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  as_root 1 <<SQL
CREATE USER doonce@'127.0.0.1' IDENTIFIED BY '$password';
GRANT ALL PRIVILEGES ON *.* TO doonce@'127.0.0.1' WITH GRANT OPTION;
CREATE DATABASE doonce;
SQL
  for node in 2 3; do start "$node" || { down; exit 1; }; done
  local urls=
  for node in $NODES; do urls="$urls mysql://doonce:$password@127.0.0.1:$(port "$node" 1)/doonce"; done
  (umask 077 && echo "${urls# }" >"$STATE/urls")
}

down() {
  local node
  if [ -s "$STATE/data" ]; then
    for node in 3 2 1; do stop "$node"; done
    rm -rf "$(data)"
  fi
  rm -rf "$STATE"
}

is_up() {
  local node
  [ -s "$STATE/urls" ] || return 1
  for node in $NODES; do synced "$node" || return 1; done
}

node_of() {
  case ${1:-} in
  1 | 2 | 3) echo "$1" ;;
  *)
    say "which node? 1, 2 or 3"
    return 2
    ;;
  esac
}

case ${1:-} in
up)
  if ! is_up; then down; up; fi
  cat "$STATE/urls"
  ;;
urls) cat "$STATE/urls" ;;
down) down ;;
kill) node=$(node_of "${2:-}") && to_process KILL "$node" ;;
freeze) node=$(node_of "${2:-}") && to_process STOP "$node" ;;
thaw) node=$(node_of "${2:-}") && to_process CONT "$node" ;;
stop) node=$(node_of "${2:-}") && stop "$node" ;;
start) node=$(node_of "${2:-}") && start "$node" ;;
cut) node=$(node_of "${2:-}") && isolate "$node" 1 ;;
mend) node=$(node_of "${2:-}") && isolate "$node" 0 ;;
run)
  shift
  STATE=$(mktemp -d) # of this run alone: another one beside it has its own cluster
  export DOONCE_GALERA_STATE=$STATE
  trap down EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
  up
  DOONCE_TEST_GALERA=$(cat "$STATE/urls")
  export DOONCE_TEST_GALERA
  "$@"
  ;;
*)
  sed -n '2,10s/^# \{0,1\}//p' "$0" >&2
  exit 2
  ;;
esac
