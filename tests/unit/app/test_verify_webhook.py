"""`doonce verify-webhook` says whether a kept delivery is believed, and if not, why and what to look at."""

import json
from pathlib import Path

import pytest

from doonce.app.cli.root import run

PACKS = Path(__file__).parents[3] / "packs"
SIGNATURE = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"


@pytest.fixture(name="secret")
def secret_file(tmp_path: Path) -> str:
    """The secret of the provider's published example."""
    file = tmp_path / "secret"
    file.write_text("It's a Secret to Everybody\n")
    return str(file)


@pytest.fixture(name="body")
def body_file(tmp_path: Path) -> str:
    """Its body."""
    file = tmp_path / "body"
    file.write_text("Hello, World!")
    return str(file)


def asked(secret: str, body: str, *more: str, header: str = f"X-Hub-Signature-256: {SIGNATURE}") -> int:
    """The exit status of the command."""
    files = ["--secret-file", secret, "--body", body]
    return run(["verify-webhook", str(PACKS / "github"), "event", *files, "--header", header, *more])


def test_a_delivery_that_verifies(secret: str, body: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert asked(secret, body, "--json") == 0
    assert json.loads(capsys.readouterr().out) == {
        "verified": "event", "secret": 1, "signed_at_us": None, "challenge_answer": None,
    }  # fmt: skip
    assert asked(secret, body) == 0
    assert "verified" in capsys.readouterr().out


def test_one_that_does_not_says_why_and_shows_no_secret(
    secret: str, body: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(body).write_text("Hello, World")
    assert asked(secret, body) == 6
    said = capsys.readouterr().err
    assert "not believed: proof_wrong" in said
    assert "the bytes that came" in said
    assert "Everybody" not in said


def test_a_second_active_secret_is_tried(secret: str, body: str, tmp_path: Path) -> None:
    (tmp_path / "new").write_text("another")
    assert asked(str(tmp_path / "new"), body, "--secret-file", secret) == 0


@pytest.mark.parametrize("header", ["X-Hub-Signature-256", ": x", "X-Hub-Signature-256: ☂"])
def test_a_header_that_is_none_is_refused(secret: str, body: str, header: str) -> None:
    assert asked(secret, body, header=header) == 2


def test_a_webhook_that_there_is_not(body: str, secret: str, capsys: pytest.CaptureFixture[str]) -> None:
    files = ["--secret-file", secret, "--body", body, "--header", "A: b"]
    assert run(["verify-webhook", str(PACKS / "github"), "push", *files]) == 2
    assert "one of event" in capsys.readouterr().err
