"""The command line: what it prints, what it returns, and one clear line for each failure."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from simulators.launch import Simulator
from tests.e2e.conftest import PACK, TOKEN, people, toml

from doonce.app.cli.root import run
from doonce.base.limits import LIMITS

pytestmark = pytest.mark.e2e

MISSING, UNAVAILABLE, USAGE = 3, 5, 2
LINK = ["link", "acme", "main", "people.write"]
GAP = ["gap", "close", "acme", "main", "people.write", "orders"]


class Doonce:
    """Runs commands in an empty folder, and keeps what the last one said."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.out = ""
        self.err = ""

    def __call__(self, *tokens: str) -> int:
        self._capsys.readouterr()
        status = run([str(token) for token in tokens])
        self.out, self.err = self._capsys.readouterr()
        return status

    def json(self, *tokens: str) -> Any:
        """The JSON document that a command printed."""
        assert self(*tokens, "--json") == 0, self.err
        return json.loads(self.out)


@pytest.fixture
def doonce(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Doonce:
    monkeypatch.chdir(tmp_path)
    for name in ("DOONCE_CONFIG", "DOONCE_DATABASE"):
        monkeypatch.delenv(name, raising=False)
    return Doonce(capsys)


@pytest.fixture
def published(doonce: Doonce, simulator: Simulator) -> dict[str, Any]:
    """A migrated SQLite database with a published binding."""
    Path("doonce.toml").write_text(
        '[egress]\nplain_http = true\nprivate_networks = ["all"]\nundeclared_origins = true\n'
    )
    Path("binding.toml").write_text(toml(people(simulator.url)))
    Path("secret").write_text(f"{TOKEN}\n")
    doonce.json("migrate")
    found: dict[str, Any] = doonce.json("publish", str(PACK), "binding.toml", "--secret-file", "secret")
    return found


def test_help_and_version(doonce: Doonce) -> None:
    assert doonce("--help") == 0
    for command in ("up", "serve", "migrate", "publish", "status", "show", "demo", "credential", "declare"):
        assert command in doonce.out
    assert doonce("--version") == 0
    assert doonce("show", "--help") == 0
    assert "handoff key" in doonce.out


def test_migrating_twice_changes_nothing(doonce: Doonce) -> None:
    first = doonce.json("migrate")
    assert (first["before"], bool(first["after"])) == (None, True)
    assert doonce.json("migrate")["before"] == first["after"]
    assert doonce("migrate") == 0
    assert "nothing to do" in doonce.out


def test_from_nothing_to_a_story(doonce: Doonce, published: dict[str, Any]) -> None:
    assert published["binding_digest"].startswith("sha256:")
    again = doonce.json("publish", str(PACK), "binding.toml")
    assert again == published
    link = doonce.json("link", "acme", "main", "people.write", "contact", "--local", "1", "--remote", "501")
    assert doonce("show", link["link"]) == 0
    assert "link adopted" in doonce.out
    credential = doonce.json("credential", "issue", "acme", "main", "people.write", "--note", "crm")
    assert credential["token"].startswith("dnc_")
    listed = doonce.json("credential", "list")
    assert [(one["credential"], one["note"]) for one in listed] == [(credential["credential"], "crm")]
    assert credential["token"] not in doonce.out
    assert doonce.json("credential", "revoke", credential["credential"])["state"] == "revoked"
    status = doonce.json("status")
    assert [family["family"] for family in status["families"]] == [
        "effect",
        "reconcile",
        "completion",
        "event",
        "hydrate",
        "handler",
        "push",
        "catch_up",
    ]
    assert doonce("status") == 0
    assert "no outcome is unknown" in doonce.out


def test_connecting_another_identity_begins_a_generation(doonce: Doonce, published: dict[str, Any]) -> None:
    rotated = doonce.json("connect", "acme", "main", "portal", "--secret-file", "secret")
    assert rotated["generation"] == 1
    renewed = doonce.json("connect", "acme", "main", "portal", "--secret-file", "secret", "--new-generation")
    assert renewed["generation"] == 2
    assert doonce.json("disconnect", "acme", "main", "portal")["state"] == "disconnected"


def test_declaring_an_incarnation(doonce: Doonce, published: dict[str, Any]) -> None:
    told = doonce.json("declare", "lossless", "--reason", "a drill")
    assert (told["declared"], told["reason"]) == ("lossless", "a drill")


@pytest.mark.parametrize(
    "tokens, status, says, next_step",
    [
        (["melt"], USAGE, 'unknown command "melt"', "--help"),
        (["show"], USAGE, "requires an argument", "--help"),
        (["show", "cmd_" + "0" * 32], MISSING, "there is nothing with this id", "cmd_…"),
        (["cancel", "att_1"], USAGE, "no command id", "cmd_…"),
        (["resolve", "att_" + "0" * 32, "happened", "--reason", "x"], MISSING, "no such attempt", "doonce status"),
        (["resolve", "att_1", "perhaps", "--reason", "x"], USAGE, "perhaps", "--help"),
        (["publish", "no-such-pack", "binding.toml"], USAGE, "pack.toml: cannot be read", "check"),
        (["publish", "no-such-folder/hubspot", "binding.toml"], USAGE, "no-such-folder/hubspot/pack.toml", "check"),
        (["connect", "acme", "main", "nobody", "--secret-file", "secret"], MISSING, "named nobody", "connect"),
        (["connect", "acme", "main", "portal", "--secret-file", "none"], USAGE, "cannot be read", "check the path"),
        (["credential", "revoke", "crd_" + "0" * 32], MISSING, "no such credential", "credential list"),
        (["cancel", "cmd_" + "0" * 32], MISSING, "no such command", "doonce show"),
        (["replay", "wrk_" + "0" * 32], MISSING, "no such work item", "doonce show"),
        (["release", "wrk_" + "0" * 32, "--reason", "x"], MISSING, "no such work item", "doonce show"),
        ([*GAP, "--sequence", "1", "--losses", "1", "--reason", "x"], MISSING, "no such gap", "gap list"),
        (["credential", "issue", "acme", "main", "c" * 129], USAGE, "at most 128", ""),
        ([*LINK, "deal", "--local", "1", "--remote", "2"], USAGE, "links no 'deal'", "contact"),
        (["status", "--database", "oracle://x/y"], USAGE, "is not supported", "sqlite:///"),
        (["status", "--database", "sqlite:///elsewhere.db"], UNAVAILABLE, "there is no database at", "doonce migrate"),
        (["status", "--database", "postgresql://doonce@127.0.0.1:1/x"], UNAVAILABLE, "cannot be reached", "is up"),
        (["status", "--config", "none.toml"], USAGE, "cannot be read", "--config"),
    ],
    ids=lambda value: "-".join(value)[:40] if isinstance(value, list) else "",
)  # fmt: skip
def test_a_failure_is_one_line_with_what_to_do_next(
    doonce: Doonce, published: dict[str, Any], tokens: list[str], status: int, says: str, next_step: str
) -> None:
    assert doonce(*tokens) == status
    lines = doonce.err.splitlines()
    assert lines[0].startswith("doonce: ")
    assert says in lines[0]
    assert next_step in "".join(lines[1:])
    assert "Traceback" not in doonce.err
    assert doonce.out == ""


def test_a_failure_as_json(doonce: Doonce, published: dict[str, Any]) -> None:
    assert doonce("show", "cmd_" + "0" * 32, "--json") == MISSING
    assert json.loads(doonce.err)["error"]["class"] == "MISSING_OR_DENIED"


def test_a_database_that_was_never_migrated_says_so(doonce: Doonce) -> None:
    Path("empty.db").touch()
    assert doonce("status", "--database", "sqlite:///empty.db") == UNAVAILABLE
    assert "doonce migrate" in doonce.err


def test_a_question_to_no_database_leaves_nothing(doonce: Doonce) -> None:
    assert doonce("status", "--database", "sqlite:///typo.db") == UNAVAILABLE
    assert list(Path().iterdir()) == []


def test_a_folder_that_is_not_there(doonce: Doonce) -> None:
    assert doonce("migrate", "--database", "sqlite:///no/such/place.db") == UNAVAILABLE
    assert "there is no folder no/such" in doonce.err
    assert "make the folder" in doonce.err


def test_a_server_that_is_not_there(doonce: Doonce) -> None:
    url = "postgresql://doonce:geheim@127.0.0.1:1/doonce"
    assert doonce("migrate", "--database", url) == UNAVAILABLE
    assert "geheim" not in doonce.err + doonce.out


def test_a_secret_over_its_bound(doonce: Doonce, published: dict[str, Any]) -> None:
    Path("secret").write_text("s" * (LIMITS.secret_bytes_max + 1))
    assert doonce("connect", "acme", "main", "portal", "--secret-file", "secret") == USAGE
    Path("secret").write_text("s" * LIMITS.secret_bytes_max)
    assert doonce("connect", "acme", "main", "portal", "--secret-file", "secret") == 0


def test_a_secret_from_standard_input(
    doonce: Doonce, published: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the manual writes it: the hyphen is a word of its own."""
    for command in (["connect", "acme", "main", "portal"], ["publish", str(PACK), "binding.toml"]):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"from a pipe\n")))
        assert doonce(*command, "--secret-file", "-") == 0, doonce.err
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"")))
    assert doonce("connect", "acme", "main", "portal", "--secret-file", "-") == USAGE
    assert "is empty" in doonce.err


def test_a_secret_or_a_body_of_a_webhook_from_standard_input(
    doonce: Doonce, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The vector that GitHub publishes, with either half of it through a pipe."""
    Path("secret").write_text("It's a Secret to Everybody")
    Path("body").write_text("Hello, World!")
    proof = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    for piped, files in (("secret", ("-", "body")), ("body", ("secret", "-"))):
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(Path(piped).read_bytes())))
        told = doonce.json(
            "verify-webhook", "github", "event", "--header", f"X-Hub-Signature-256: {proof}",
            "--secret-file", files[0], "--body", files[1],
        )  # fmt: skip
        assert told["verified"] == "event"


def test_an_empty_secret_file(doonce: Doonce, published: dict[str, Any]) -> None:
    Path("secret").write_text("\n")
    assert doonce("connect", "acme", "main", "portal", "--secret-file", "secret") == USAGE
    assert "is empty" in doonce.err


def test_the_demo_is_part_of_the_source_tree(doonce: Doonce, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("doonce.app.cli.running.DEMO", "examples.no_such_demo")
    assert doonce("demo") == USAGE
    assert "make demo" in doonce.err
