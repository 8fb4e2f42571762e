"""The README's example is run as it stands, with the binding that it shows, against the simulator."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from simulators.launch import Simulator, running
from tests.e2e.conftest import LOCAL, ROOT

from doonce.app import embedded
from doonce.app.config import settings_from

pytestmark = pytest.mark.e2e

README = ROOT / "README.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def shown(language: str, with_words: str) -> str:
    """The first block of a language that has these words."""
    blocks = [
        text for kind, text in BLOCK.findall(README.read_text()) if kind == language and with_words in text
    ]
    assert blocks, f"the README has no {language} with {with_words!r}"
    return str(blocks[0])


def example() -> str:
    """What runs a deployment."""
    return shown("python", "Doonce(")


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
    binding = shown("toml", "doonce.binding/1")
    (tmp_path / "binding.toml").write_text(f'origin = "{portal.url}"\n{binding}')  # the only difference
    monkeypatch.chdir(tmp_path)

    def with_local_egress(given: dict[str, Any]) -> Any:
        """What a deployment on one's own machine sets in its configuration: the simulator may be called."""
        return settings_from({"egress": LOCAL} | given)

    monkeypatch.setattr(embedded, "settings_from", with_local_egress)
    exec(compile(example(), str(README), "exec"), {"__name__": "__main__"})
    assert "accepted" in capsys.readouterr().out
    assert portal.stats()["method:PATCH"] == 1
