"""`doonce conformance` with its workers on every node of a cluster."""

import pytest
from tests.conformance.running import conformance

from doonce.conformance.cases import CASES

pytestmark = [pytest.mark.process, pytest.mark.timeout(300)]


def test_every_case_passes_with_workers_on_three_nodes(galera_nodes: list[str]) -> None:
    others = [part for url in galera_nodes[1:] for part in ("--also", url)]
    ran = conformance(galera_nodes[0], *others, "--json")
    assert ran.failed == {}, ran.err
    assert (ran.status, ran.report["passed"]) == (0, len(CASES))


def test_a_way_that_leads_elsewhere_is_refused(galera_nodes: list[str], fresh_mariadb: str) -> None:
    ran = conformance(galera_nodes[0], "--also", fresh_mariadb, "--case", "run-after")
    assert ran.status == 2
    assert "leads to another database" in ran.err


def test_only_a_cluster_has_several_ways(tmp_path: object) -> None:
    url = f"sqlite:///{tmp_path}/x.db"
    ran = conformance(url, "--also", url, "--case", "run-after")
    assert ran.status == 2
    assert "no other way" in ran.err
