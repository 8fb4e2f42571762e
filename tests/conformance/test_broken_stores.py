"""A broken store is caught: in a copy of the source one predicate is turned off, and the cases that guard it fail."""

import shutil
from pathlib import Path

import pytest
from tests.conformance.running import SOURCE, conformance

pytestmark = pytest.mark.process

MUTANTS = [
    pytest.param(
        "work/model.py", "if item.lease_until >= now_us:", "if item.lease_until < 0:",
        ("one-winner", "spare-hints", "expiry-reclaim"), id="a lease keeps nobody away",
    ),
    pytest.param(
        "work/model.py", "and item.lease_until >= now_us\n", "\n",
        ("stale-renew", "stale-settle", "stale-mark", "stale-finish"), id="a lease that ran out is live",
    ),
    pytest.param(
        "work/model.py", "and item.lease_token == claimed.token\n", "\n",
        ("stale-renew", "stale-settle", "stale-mark", "stale-finish"), id="any token is the token",
    ),
    pytest.param(
        "work/model.py", "if item.run_after > now_us:", "if item.run_after < 0:",
        ("run-after",), id="the time does not matter",
    ),
    pytest.param(
        "work/claim.py", "if source is None or source.nominee != item.id:", "if source is None:",
        ("source-order",), id="anybody may head a source lane",
    ),
    pytest.param(
        "work/claim.py", "if not target.admits(item.id, now_us):", "if target.hold_until < 0:",
        ("target-exclusion",), id="a target lane admits everybody",
    ),
    pytest.param(
        "effects/model.py", "return RefusedMark.CANCELLED if cancelled else None", "return None",
        ("cancel-running",), id="a cancellation does not stop a dispatch",
    ),
    pytest.param(
        "commands/model.py", "state=stored.state,", "state=HandoffState.COMMAND_ACCEPTED,",
        ("accept-or-reject", "late-delivery", "no-receipt"), id="a rejection is told as an acceptance",
    ),
    pytest.param(
        "commands/model.py", '("payload_digest", stored.payload_digest, asked.payload_digest),', "",
        ("other-payload",), id="a payload is not compared",
    ),
    pytest.param(
        "commands/model.py", '("outbox_id", stored.outbox_id, asked.outbox_id),', "",
        ("other-outbox-id",), id="an outbox id is not compared",
    ),
    pytest.param(
        "commands/model.py", "if left != right), \"\")", "if axis != \"scope\" and left != right), \"\")",
        ("other-org", "other-installation", "other-capability", "other-binding"), id="a scope is not compared",
    ),
    pytest.param(
        "effects/store.py", "generation_current=generations.get(r.principal_id) == r.generation,",
        "generation_current=True,", ("no-retarget",), id="a generation is not fenced",
    ),
    pytest.param(
        "commands/service.py", "scope.org, scope.installation, scope.capability, scope.binding_digest\n        )",
        "scope.org, scope.installation, scope.capability, scope.binding_digest\n        )\n"
        "        view = await self._views.latest(scope.org, scope.installation, scope.capability)",
        ("no-mixed-view",), id="the newest view is taken",
    ),
    pytest.param(
        "effects/model.py", "return _unknown(Outcome.OUTCOME_UNKNOWN, Unresolved.THIS)\n        case",
        "return NextStep(ending.outcome, Event.RETRY, 1)\n        case",
        ("no-answer", "kill-after-mark", "kill-after-answer"), id="an unknown write is tried again",
    ),
    pytest.param(
        "app/operate/service.py", "store.stories, work_id, scope)", "store.stories, work_id, None)",
        ("dead-replay",), id="an operator replays anybody's dead work",
    ),
    pytest.param(
        "work/replay.py", "predecessor=item.id,", "predecessor=None,",
        ("dead-replay",), id="a replay does not name what it replays",
    ),
    pytest.param(
        "work/replay.py", "if item.family not in REPLAYABLE:", "if not REPLAYABLE:",
        ("effect-replay",), id="an effect is replayed like other work",
    ),
    pytest.param(
        "effects/caller.py", "self._observer.call_took(call.operation,",
        "self._observer.call_took(call.request.body.decode(),", ("no-leaks",), id="a payload is a metric's label",
    ),
]  # fmt: skip


@pytest.mark.parametrize("file, right, wrong, cases", MUTANTS)
def test_a_broken_store_is_caught(
    tmp_path: Path, file: str, right: str, wrong: str, cases: tuple[str, ...]
) -> None:
    source = tmp_path / "src"
    shutil.copytree(SOURCE, source)  # with what is compiled: only the broken module is compiled anew
    broken = source / "doonce" / file
    text = broken.read_text()
    assert text.count(right) == 1, "the predicate is not where it was: choose another place"
    broken.write_text(text.replace(right, wrong))
    options = [option for case in cases for option in ("--case", case)]
    ran = conformance(f"sqlite:///{tmp_path / 'x.db'}", "--json", *options, source=source)
    assert ran.status == 1, ran.err
    assert set(ran.failed) == set(cases)
    assert not [seen for seen in ran.failed.values() if seen.startswith("the case itself failed")]
