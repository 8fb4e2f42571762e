"""The kernel's lines of authority §13, each with its cases or with the mechanism that is not built yet (PROTOCOL Q1).

Lines about one provider ship with that provider's pack.
"""

from __future__ import annotations

from typing import Final

from doonce.conformance.model import Line

CUTOVER: Final = "cutover"
ROLLBACK: Final = "rollback"
LEGACY_OUTCOMES: Final = "legacy outcomes"
REFRESH: Final = "token refresh"
TIDB: Final = "a run on TiDB, where this release has never been"
QUOTA: Final = "replica quota"

LINES: Final = (
    Line("Claiming stays closed until the old claimers are proven gone", missing=CUTOVER),
    Line(
        "Cutover and rollback drain the old owner to zero before the next one",
        missing=f"{CUTOVER}, {ROLLBACK}",
    ),
    Line("A rollback admits nobody while anything here can still execute or be reclaimed", missing=ROLLBACK),
    Line("A rollback fences unstarted work until its legacy outcome is known", missing=LEGACY_OUTCOMES),
    Line("A second cutover reopens nothing and repeats nothing", missing=CUTOVER),
    Line("Legacy outcomes are idempotent; a missing or ambiguous one blocks", missing=LEGACY_OUTCOMES),
    Line("Concurrent claim has one winner", ("one-winner", "spare-hints")),
    Line(
        "A stale claimant cannot refresh, dispatch, complete, retry or finalize",
        ("stale-renew", "stale-settle", "stale-mark", "stale-finish"),
        missing=REFRESH,
    ),
    Line("A process is killed before and after its claim", ("kill-before-claim", "kill-after-claim")),
    Line("Lease expiry and reclaim", ("expiry-reclaim",)),
    Line("Run-after", ("run-after",)),
    Line("Source lanes order and target lanes exclude", ("source-order", "target-exclusion")),
    Line("Cancellation and graceful drain", ("cancel-waiting", "cancel-running", "drain")),
    Line("Dead work is replayed only with authorization", ("dead-replay", "effect-replay")),
    Line("No secret or payload in logs, metrics or operator summaries", ("no-leaks",)),
    Line("Many processes, on TiDB as well", ("many-processes",), missing=TIDB),
    Line("No mixed binding revision", ("no-mixed-view",)),
    Line(
        "One external attempt for an ambiguous write",
        ("no-answer", "kill-after-mark", "kill-after-answer"),
    ),
    Line("Acceptance racing rejection leaves one command or one rejection", ("accept-or-reject",)),
    Line(
        "A handoff key with another payload or outbox id is quarantined",
        ("other-payload", "other-outbox-id"),
    ),
    Line("A handoff key of another organization fails closed", ("other-org",)),
    Line(
        "A handoff key of another installation, capability or binding fails closed",
        ("other-installation", "other-capability", "other-binding"),
    ),
    Line("Late delivery after a rejection creates nothing", ("late-delivery",)),
    Line("No command and no receipt is no rejection", ("no-receipt",)),
    Line("A reconnect cannot retarget queued work", ("no-retarget",)),
    Line("More replicas do not multiply a provider's quota", missing=QUOTA),
)
