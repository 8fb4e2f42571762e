"""A command that kills whoever runs it (PROTOCOL W2): only dying alone convicts, and nobody else is harmed."""

from __future__ import annotations

import pytest
from tests.process.effects.deployment import Deployment, Wanted
from tests.process.effects.waiting import until
from tests.process.effects.witness import Witness, check

pytestmark = [pytest.mark.process, pytest.mark.timeout(180)]
DEATHS_MAX = 20


def test_w2_a_crash_loop_convicts_the_one_that_dies_alone(deployment: Deployment) -> None:
    contacts = [f"1{number:03}" for number in range(12)]
    deployment.contacts(*contacts)
    accepted = deployment.accept(
        *(Wanted(contact, "contact.patch", contact, {"title": contact}) for contact in contacts)
    )
    poison = accepted[5]
    deaths = 0
    while not deployment.ended():
        assert deaths < DEATHS_MAX, deployment.story()
        # with room for all of them in each claim: none of the others has been marked when it dies
        worker = deployment.worker(
            dies_of=poison.wanted.contact, concurrency=2 * len(contacts), expiries_max=3, lease_us=500_000
        )
        until(
            lambda worker=worker: worker.is_dead() or deployment.ended(),
            "the end of the worker or of the work",
        )
        deaths += worker.is_dead()
    ends = deployment.journal.ends()
    assert {one.id for one in accepted if ends[one.id].ended_as != "accepted"} == {poison.id}
    assert ends[poison.id].ended_as == "dead"
    (item,) = deployment.journal.items("effect", poison.id)
    assert (item.state, item.failure_class) == ("dead", "poison")
    assert deaths >= 3, "it had to be suspected before it was tried alone"
    assert Witness(deployment).arrivals[poison.id] == []
    check(deployment)
