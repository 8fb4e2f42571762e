"""A node of a Galera cluster: whether it may be worked with, and what shows that its cluster lost commits.

A node is worked with while it is in the primary component and has what the others have. A cluster keeps what it
committed as long as each primary component has the majority of the one before it: that is its own rule, and who
bootstraps a minority, or starts a cluster anew from one node, breaks it. So the members are pinned beside the cluster's
identity, and followed as they come and go; a component without the majority of those that were pinned last may lack
commits (PROTOCOL S2).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import sqlalchemy as sa

from doonce.db.statement import Statement
from doonce.db.transaction import Txn, fetch

CAUSAL_READS: Final = "SET SESSION wsrep_sync_wait = 1"
"""Each transaction begins when its node has applied what the cluster had committed by then (PROTOCOL T5)."""
ALL_CAUSAL: Final = "SET SESSION wsrep_sync_wait = 15"
"""The same for each statement: what asks for tables (SHOW) is told of them only so."""
STATUS: Final = (
    "SHOW STATUS WHERE variable_name IN ('wsrep_ready', 'wsrep_cluster_status', 'wsrep_local_state_comment')"
)
MEMBERS: Final = "SELECT cluster_uuid, node_uuid FROM mysql.wsrep_cluster_members"
MAY_READ: Final = "GRANT SELECT ON mysql.wsrep_cluster_members TO this user"
BEGINNING: Final = "SAVEPOINT beginning"
STILL_THERE: Final = "RELEASE SAVEPOINT beginning"
"""A node that rolls a transaction back for one of another node does not always say so: what follows would then run in a
new one, without the locks and the writes that came before. The new one has no such savepoint (PROTOCOL T1)."""
IS_NODE: Final = Statement(
    "galera.is_node", lambda dialect: sa.text("SHOW SESSION VARIABLES LIKE 'wsrep_on'")
)
READ_MEMBERS: Final = Statement("galera.members", lambda dialect: sa.text(MEMBERS))
PREFIX: Final = "cluster:"
MEMBER_DIGITS: Final = 16
"""A member's id is a time and a counter, then what is random: so many digits tell the members of a cluster apart."""


def is_node(variables: Mapping[str, str]) -> bool:
    """Whether a session with these variables is one of a cluster's node."""
    return variables.get("wsrep_on", "OFF") == "ON"


def doubts(status: Mapping[str, str]) -> list[str]:
    """Why a node may not be worked with now; empty if it may."""
    faults = []
    if status.get("wsrep_cluster_status") != "Primary":
        faults.append("this node is cut off from the majority of its cluster")
    elif status.get("wsrep_local_state_comment") != "Synced":
        faults.append(
            f"this node is not synced but {status.get('wsrep_local_state_comment', 'without a state')}"
        )
    elif status.get("wsrep_ready") != "ON":
        faults.append("this node is not ready")
    return faults


def place() -> Txn[tuple[str, str] | None]:
    """The cluster's identity and its members, or None where the server is no node of one."""
    found = yield from fetch(IS_NODE)
    if not found or str(found[0][1]) != "ON":
        return None
    rows = yield from fetch(READ_MEMBERS)
    (cluster,) = {row[0] for row in rows}
    return f"{PREFIX}{cluster}", members_text(row[1] for row in rows)


def members_text(members: Iterable[str]) -> str:
    """Members as they are pinned."""
    return " ".join(sorted(member.replace("-", "")[:MEMBER_DIGITS] for member in members))


def carries_on(pinned: str, found: str) -> bool:
    """Whether a primary component of these members has the majority of those that were pinned: then it lost nothing."""
    before, now = set(pinned.split()), set(found.split())
    return 2 * len(before & now) > len(before)
