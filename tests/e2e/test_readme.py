"""The README's example is run as it stands: in a folder with the packs beside it, against the simulator."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from simulators.launch import Simulator, running
from tests.e2e.conftest import LOCAL, ROOT, people, toml

from doonce.app import embedded
from doonce.app.config import settings_from

pytestmark = pytest.mark.e2e

README = ROOT / "README.md"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def example() -> str:
    """The first block of Python that runs a deployment."""
    blocks = [block for block in BLOCK.findall(README.read_text()) if "Doonce(" in block]
    assert blocks, "the README has no example that runs"
    return blocks[0]


def test_the_example_is_short() -> None:
    lines = [line for line in example().splitlines() if line.strip()]
    assert len(lines) <= 14


@pytest.fixture
def portal(tmp_path: Path) -> Iterator[Simulator]:
    """The provider of the example, which takes its token."""
    with running("simulators.hubspot", tmp_path / "ledger.jsonl", "--token", "token") as started:
        started.seed({"id": "501", "properties": {"email": "a@example.com", "jobtitle": "Engineer"}})
        yield started


def test_the_example_runs(
    portal: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "packs").symlink_to(ROOT / "packs")
    (tmp_path / "binding.toml").write_text(toml(people(portal.url)))
    monkeypatch.chdir(tmp_path)

    def with_local_egress(given: dict[str, Any]) -> Any:
        """What a deployment on one's own machine sets in its configuration: the simulator may be called."""
        return settings_from({"egress": LOCAL} | given)

    monkeypatch.setattr(embedded, "settings_from", with_local_egress)
    exec(compile(example(), str(README), "exec"), {"__name__": "__main__"})
    assert "accepted" in capsys.readouterr().out
    assert portal.stats()["method:PATCH"] == 1
