# shellcheck shell=bash
# The network of the tests' Galera cluster, which galera.sh sources: one that can be broken, and says nothing then.
#
# Each node's server lives in a network namespace of its own, with two links:
#   galera   to a bridge in a fourth namespace, where nothing else is. All that the nodes say to each other goes here.
#   clients  to a bridge on this host, over which tests and workers come, whatever becomes of the group's link.
# A cut disables the node's port at the group's bridge: each packet is lost, in both directions, and nobody is told.
# No reset, no refusal, and the node's own link stays up. No rule of a firewall is made, and no route leads out of it.
#
# Names end as the data directory's does, which mktemp made, so runs side by side share none. $STATE/namespaces holds
# what they begin with, and is written before the first one is made: whatever happens, unmake_network finds all.
# shellcheck disable=SC2153 # $STATE and $NODES are galera.sh's
PATH="$PATH:/usr/sbin:/sbin" # where ip, bridge and tc are, and whoever is no login may not look

# What a narrow link carries. Whatever waits longer than the latency is lost.
NARROW="rate 1mbit burst 4kb latency 400ms"

has_network() { [ -s "$STATE/namespaces" ]; }

namespace() { echo "$(cat "$STATE/namespaces")-$1"; }

# The clients' bridge on this host, or node N's port of it (a device's name has at most fifteen letters).
device() {
  local name
  name=$(cat "$STATE/namespaces")
  echo "dg-${name##*-}${1:+-$1}"
}

# Where a node is reached: `address N clients` or `address N group`.
address() {
  if ! has_network; then echo 127.0.0.1
  elif [ "$2" = group ]; then echo "10.0.0.1$1"
  else echo "$(cat "$STATE/clients").1$1"; fi
}

# From where clients reach all nodes.
address_of_clients() {
  if has_network; then echo "$(cat "$STATE/clients").1"; else echo 127.0.0.1; fi
}

# A network for this run alone, or one line that says why there is none: then the nodes are on loopback.
make_network() {
  local why
  if [ "$(id -u)" != 0 ]; then why="this is not root"
  elif ! { command -v ip && command -v bridge; } >/dev/null; then why="ip or bridge is missing: install iproute2"
  else
    echo "doonce-galera-$1" >"$STATE/namespaces"
    if why=$(lay 2>&1); then return 0; fi
    why=$(echo "${why:-no reason was given}" | head -n 1)
    unmake_network
  fi
  say "no network of its own ($why): the nodes are on loopback, and \`cut\` is Galera's own switch, gmcast.isolate"
}

lay() {
  local switch node
  switch=$(namespace group)
  ip netns add "$switch" &&
    ip -n "$switch" link add galera type bridge &&
    ip -n "$switch" link set galera up &&
    ip link add "$(device)" type bridge &&
    ip link set "$(device)" up &&
    give_addresses || return 1
  for node in $NODES; do attach "$node" || return 1; done
}

# A net for the clients, out of those that are set aside for tests (RFC 2544). To add its route is to reserve it: a
# second run's is refused, so it tries another one.
give_addresses() {
  local net tried
  for tried in 1 2 3 4 5 6 7 8 9; do
    net=198.$((18 + RANDOM % 2)).$((RANDOM % 256))
    if ip route add "$net.0/24" dev "$(device)"; then
      echo "$net" >"$STATE/clients"
      ip addr add "$net.1/32" dev "$(device)"
      return
    fi
  done
  return 1
}

attach() {
  local node=$1 switch home
  switch=$(namespace group)
  home=$(namespace "$node")
  ip netns add "$home" &&
    ip -n "$home" link set lo up &&
    ip -n "$switch" link add "node$node" type veth peer name galera netns "$home" &&
    ip -n "$switch" link set "node$node" master galera up &&
    ip -n "$home" addr add "$(address "$node" group)/24" dev galera &&
    ip -n "$home" link set galera up &&
    ip link add "$(device "$node")" type veth peer name clients netns "$home" &&
    ip link set "$(device "$node")" master "$(device)" up &&
    ip -n "$home" addr add "$(address "$node" clients)/24" dev clients &&
    ip -n "$home" link set clients up &&
    ip netns exec "$home" true # some containers may make a namespace, and may not enter it
}

# Only what this run has made goes, as much of it as there is; also whatever a node's server left running in its own.
unmake_network() {
  local part name
  has_network || return 0
  for part in $NODES ""; do # a pair's other end goes with it
    name=$(device "$part")
    [ ! -e "/sys/class/net/$name" ] || ip link del "$name" || say "the device $name could not be removed"
  done
  for part in $NODES group; do
    name=$(namespace "$part")
    [ -e "/var/run/netns/$name" ] || continue
    ip netns pids "$name" | xargs -r kill -KILL 2>/dev/null || true
    ip netns del "$name" || say "the namespace $name could not be removed"
  done
  rm -f "$STATE/namespaces" "$STATE/clients"
}

# What is sent to a node's group port, and from it, is lost.
cut_link() { bridge -n "$(namespace group)" link set dev "node$1" state 0; }

# The link passes little, in both directions, so that what is sent waits, and some of it is lost.
narrow_link() {
  # shellcheck disable=SC2086 # words
  tc -n "$(namespace group)" qdisc replace dev "node$1" root tbf $NARROW &&
    tc -n "$(namespace "$1")" qdisc replace dev galera root tbf $NARROW
}

# The link is whole again, after either.
mend_link() {
  bridge -n "$(namespace group)" link set dev "node$1" state 3
  tc -n "$(namespace group)" qdisc del dev "node$1" root 2>/dev/null || true # it is there only if it was narrow
  tc -n "$(namespace "$1")" qdisc del dev galera root 2>/dev/null || true
}
