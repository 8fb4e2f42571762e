"""What schemathesis makes of the OpenAPI document is answered as the document says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import CHECKS, load_all_checks, not_a_server_error
from tests.e2e.test_serve import service

from doonce.app.web.openapi import DOCUMENT, OPERATIONS

pytestmark = [pytest.mark.e2e, pytest.mark.process]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str, Path]]:
    """A service with an operator's credential; its log."""
    folder = tmp_path_factory.mktemp("openapi")
    with service(folder, "up", "--port", "0") as up:
        up.until_ready(ready=True)
        names = ("acme", "main", "people.write", "doonce.operate")
        with service(folder, "credential", "issue", *names, "--json") as issued:
            token = json.loads(issued.url)["token"]
        yield up.url, token, up.log


@pytest.mark.timeout(100)
def test_what_the_document_promises_is_kept(served: tuple[str, str, Path]) -> None:
    url, token, log = served
    schema = schemathesis.openapi.from_dict(json.loads(DOCUMENT))
    schema.config.update(base_url=url)
    load_all_checks()
    named = ("response_schema_conformance", "content_type_conformance", "status_code_conformance")
    checks = [not_a_server_error, *(CHECKS.get_one(name) for name in named)]
    statuses: dict[str, set[int]] = {}

    def call(case: Any) -> None:
        response = case.call(headers={"Authorization": f"Bearer {token}"}, timeout=10)
        statuses.setdefault(case.path, set()).add(response.status_code)
        case.validate_response(response, checks=checks)

    few = settings(
        max_examples=12,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    for operation in schema.get_all_operations():
        few(given(operation.ok().as_strategy())(call))()
    assert set(statuses) == {one.path.replace(":path", "") for one in OPERATIONS}
    assert 200 in statuses["/v1/status"]
    assert "Traceback" not in log.read_text()
