#!/usr/bin/env bash
# A private, throw-away MariaDB Galera cluster of three nodes for the tests: on this host only, durable as in production.
#
#   scripts/galera.sh run COMMAND...   run a command with DOONCE_TEST_GALERA set, and stop what was started
#   scripts/galera.sh up | urls | down the same by hand
#   scripts/galera.sh kill|stop|start|freeze|thaw|cut|narrow|mend N   do that to node N (1, 2 or 3) of a running one
#   scripts/galera.sh network          how its nodes are connected: namespaces, or loopback
#
# `start` with DOONCE_GALERA_AHEAD (such as +10m) gives the node a clock of its own, by libfaketime.
# DOONCE_TEST_GALERA is the nodes' URLs with a space between two. A command that `run` has started finds its cluster
# through DOONCE_GALERA_STATE.
# As root each node is in a network namespace of its own (galera_network.sh), and `cut` loses all that its group sends
# it and gets from it; elsewhere, which `up` says, it is Galera's own switch (gmcast.isolate). Clients reach the node
# either way, and `cut` returns once it tells them that it has lost the group: a cut that does not cut is an error.
set -euo pipefail

ROOT=$(cd "$(dirname "$0")/.." && pwd)
STATE=${DOONCE_GALERA_STATE:-$ROOT/var/galera} # holds the data directory's path, the ports and the nodes' URLs
NODES="1 2 3"
# A dead node is dropped after two seconds instead of Galera's five, so that a run with faults stays short. The time for
# all to agree on who is there (evs.install_timeout) is left as it is: where it was two seconds, on a busy machine one
# node that came back took the majority from all three. It follows evs.inactive_timeout, so that is left too.
SOON="evs.keepalive_period=PT0.3S;evs.inactive_check_period=PT0.3S;evs.suspect_timeout=PT2S"
START_SECONDS=90
STOP_SECONDS=30
CUT_SECONDS=20

say() { printf 'galera: %s\n' "$*" >&2; }

. "$ROOT/scripts/debian.sh"
# shellcheck source=scripts/galera_network.sh
. "$ROOT/scripts/galera_network.sh"

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
  needs_debian "mariadbd, Galera's library or rsync is missing" "install mariadb-server, galera-4 and rsync."
  say "installing the servers from Debian's packages"
  install_unstarted mariadb-server galera-4 rsync iproute2
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

# What a node tells its clients, at the port and as the user that theirs are, of the group that it is in.
told_to_clients() {
  local password
  password=$(sed 's|^[^:]*://doonce:||; s|@.*||' "$STATE/urls")
  echo "SHOW STATUS LIKE 'wsrep_cluster_status'" |
    MYSQL_PWD=$password timeout 5 "$(program mariadb)" --no-defaults --protocol=tcp --user=doonce \
      --host="$(address "$1" clients)" --port="$(port "$1" 1)" -NB 2>/dev/null | cut -f2
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

group_url() {
  local node joined=
  for node in $NODES; do joined="$joined,$(address "$node" group):$(port "$node" 2)"; done
  echo "gcomm://${joined#,}"
}

# How far a node's data goes that did not end in order, as its service would ask on a host: so it gets what it missed,
# and not the whole state, for which another node would have to stand still.
recovered() {
  local home=$1
  shift
  "$@" --wsrep-recover --log-error="$home/recovered.log" </dev/null >/dev/null 2>&1 || return 0
  sed -n 's/.*Recovered position: *//p' "$home/recovered.log" | tail -n 1
}

# Starts a node and waits until it has all that the others have; with --wsrep-new-cluster it is the first one.
start() {
  local node=$1 home server clients group position seconds=0 user= inside=() clock=()
  shift
  clients=$(address "$node" clients)
  group=$(address "$node" group)
  home="$(data)/$node"
  if is_running "$node"; then say "node $node runs already"; return 0; fi
  rm -f "$home/started"
  [ "$(id -u)" != 0 ] || user="--user=$(server_user)"
  if has_network; then inside=(ip netns exec "$(namespace "$node")"); fi
  if [ -n "${DOONCE_GALERA_AHEAD:-}" ]; then
    clock=(env "LD_PRELOAD=$(libfaketime)" "FAKETIME=$DOONCE_GALERA_AHEAD" FAKETIME_DONT_FAKE_MONOTONIC=1 NO_FAKE_STAT=1)
  fi
  # As root it becomes its user by itself: a wrapper that waits for it would stop when it is frozen, and stay so.
  local command=("${inside[@]}" "${clock[@]}" "$(program mariadbd)" --no-defaults $user --datadir="$home/data"
    --socket="$home/socket" --pid-file="$home/pid" --bind-address="$clients" --port="$(port "$node" 1)"
    --log-error="$home/server.log" --tmpdir="$home/tmp" --skip-name-resolve --max-connections=200
    --innodb-buffer-pool-size=64M --innodb-log-file-size=48M --innodb-flush-log-at-trx-commit=1
    --innodb-doublewrite=1 --innodb-autoinc-lock-mode=2 --binlog-format=ROW --performance-schema=OFF
    --character-set-server=utf8mb4 --collation-server=utf8mb4_bin --wsrep-on=ON
    --wsrep-provider="$(provider)" --wsrep-cluster-name=doonce --wsrep-cluster-address="$(group_url)"
    --wsrep-node-name="node$node" --wsrep-node-address="$group:$(port "$node" 2)"
    --wsrep-node-incoming-address="$clients:$(port "$node" 1)"
    --wsrep-sst-method=rsync --wsrep-sst-receive-address="$group:$(port "$node" 4)"
    --wsrep-provider-options="base_host=$group;base_port=$(port "$node" 2);gmcast.listen_addr=tcp://$group:$(port "$node" 2);ist.recv_addr=$group:$(port "$node" 3);gcache.size=64M;$SOON")
  if grep -qs 'seqno: *-1' "$home/data/grastate.dat"; then
    position=$(recovered "$home" "${command[@]}")
    [ -z "$position" ] || command+=("--wsrep-start-position=$position")
  fi
  "${command[@]}" "$@" </dev/null >/dev/null 2>&1 &
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

# Cuts a node off, and waits until it says so to its clients: until then it may still believe in its group.
cut_off() {
  local node=$1 told='' waited=0
  if ! is_running "$node"; then say "node $node is not running"; return 1; fi
  if has_network; then cut_link "$node"; else isolate "$node" 1; fi
  until [ -n "$told" ] && [ "$told" != Primary ]; do
    if [ "$waited" -ge $((CUT_SECONDS * 5)) ]; then
      say "node $node is cut, and what it tells its clients is: ${told:-nothing}. This is no cut; it is mended"
      mend "$node" || true
      return 1
    fi
    sleep 0.2
    waited=$((waited + 1))
    told=$(told_to_clients "$node") || told=
  done
}

narrow() {
  if ! has_network; then say "there is no network that could be narrow"; return 1; fi
  narrow_link "$1"
}

mend() {
  if has_network; then mend_link "$1"; else isolate "$1" 0; fi
}

up() {
  install_servers
  local data node password
  data=$(mktemp -d "${TMPDIR:-/tmp}/doonce-galera.XXXXXX")
  mkdir -p "$STATE"
  echo "$data" >"$STATE/data"
  free_ports 12 >"$STATE/ports"
  make_network "${data##*.}"
  for node in $NODES; do mkdir -p "$data/$node/tmp" "$data/$node/data"; done
  [ "$(id -u)" != 0 ] || chown -R "$(server_user)" "$data"
  unprivileged env TMPDIR="$data/1/tmp" "$(program mariadb-install-db)" --no-defaults --datadir="$data/1/data" --skip-test-db \
    --auth-root-authentication-method=normal >"$STATE/install.log" 2>&1 || { cat "$STATE/install.log" >&2; return 1; }
  start 1 --wsrep-new-cluster || return 1
  password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  as_root 1 <<SQL
CREATE USER doonce@'$(address_of_clients)' IDENTIFIED BY '$password';
GRANT ALL PRIVILEGES ON *.* TO doonce@'$(address_of_clients)' WITH GRANT OPTION;
CREATE DATABASE doonce;
SQL
  for node in 2 3; do start "$node" || return 1; done
  local urls=
  for node in $NODES; do urls="$urls mysql://doonce:$password@$(address "$node" clients):$(port "$node" 1)/doonce"; done
  (umask 077 && echo "${urls# }" >"$STATE/urls")
}

# Stops what is started and takes away what is made, all of it, whatever signal comes meanwhile.
down() {
  local node
  trap '' INT TERM
  if [ -s "$STATE/data" ]; then
    for node in 3 2 1; do stop "$node"; done
    unmake_network
    rm -rf "$(data)"
  fi
  rm -rf "$STATE"
}

is_up() {
  local node
  [ -s "$STATE/urls" ] || return 1
  for node in $NODES; do synced "$node" || return 1; done
}

# From here on a failure, INT and TERM leave nothing behind.
down_at_exit() {
  trap down EXIT
  trap 'exit 130' INT
  trap 'exit 143' TERM
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
  if ! is_up; then
    down
    down_at_exit
    up
    trap - EXIT
  fi
  cat "$STATE/urls"
  ;;
urls) cat "$STATE/urls" ;;
down) down ;;
kill) node=$(node_of "${2:-}") && to_process KILL "$node" ;;
freeze) node=$(node_of "${2:-}") && to_process STOP "$node" ;;
thaw) node=$(node_of "${2:-}") && to_process CONT "$node" ;;
stop) node=$(node_of "${2:-}") && stop "$node" ;;
start) node=$(node_of "${2:-}") && start "$node" ;;
cut) node=$(node_of "${2:-}") && cut_off "$node" ;;
narrow) node=$(node_of "${2:-}") && narrow "$node" ;;
mend) node=$(node_of "${2:-}") && mend "$node" ;;
network) if has_network; then echo namespaces; else echo loopback; fi ;;
run)
  shift
  STATE=$(mktemp -d) # of this run alone: another one beside it has its own cluster
  export DOONCE_GALERA_STATE=$STATE
  down_at_exit
  up
  DOONCE_TEST_GALERA=$(cat "$STATE/urls")
  export DOONCE_TEST_GALERA
  "$@"
  ;;
*)
  sed -n '2,15s/^# \{0,1\}//p' "$0" >&2
  exit 2
  ;;
esac
