"""The configuration: file, environment and command line, and one clear refusal for whatever is wrong in it."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from doonce.app.config import load_settings, settings_from
from doonce.app.opening import key_file
from doonce.app.settings import LogFormat, Role, Settings
from doonce.base.errors import Invalid
from doonce.db.points import PointAction

FILE = """
database = "sqlite:///from-file.db"
deployment = "blue"
roles = ["worker"]

[listen]
port = 9000

[effects]
concurrency = 8

[inboxes.crm]
url = "https://crm.example/doonce/completions"
credential = "s3cret-token"
"""


def written(tmp_path: Path, text: str = FILE) -> Path:
    path = tmp_path / "doonce.toml"
    path.write_text(text)
    return path


def load(path: Path | None = None, environment: dict[str, str] | None = None, **over: Any) -> Settings:
    return load_settings(path, environment=environment or {}, over=over)


def refused(path: Path | None = None, environment: dict[str, str] | None = None, **over: Any) -> Invalid:
    with pytest.raises(Invalid) as caught:
        load(path, environment, **over)
    return caught.value


def test_without_anything_the_defaults_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = load()
    assert settings == Settings()
    assert settings.roles == (Role.API, Role.WORKER, Role.RECONCILER, Role.INGRESS)


def test_a_file_in_the_working_directory_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert load().deployment == "blue"


def test_the_environment_wins_over_the_file_and_the_command_line_over_both(tmp_path: Path) -> None:
    environment = {
        "DOONCE_CONFIG": str(written(tmp_path)),
        "DOONCE_DEPLOYMENT": "green",
        "DOONCE_LISTEN__PORT": "9001",
        "DOONCE_ROLES": "api, reconciler",
        "DOONCE_EGRESS__PLAIN_HTTP": "true",
        "DOONCE_INBOXES__CRM__CREDENTIAL": "other",
        "DOONCE_LOG_FORMAT": "json",
        "PATH": "/bin",
        "DOONCE_TEST_POSTGRES": "of the project's own tests",
    }
    settings = load(None, environment, **{"listen.port": 9002})
    assert settings.database == "sqlite:///from-file.db"
    assert settings.deployment == "green"
    assert settings.listen.port == 9002
    assert settings.roles == (Role.API, Role.RECONCILER)
    assert settings.effects.concurrency == 8
    assert settings.egress.plain_http
    assert settings.log_format is LogFormat.JSON
    assert settings.open_inboxes()["crm"].credential.reveal() == "other"


def test_credentials_do_not_show(tmp_path: Path) -> None:
    assert "s3cret-token" not in repr(load(written(tmp_path)))


@pytest.mark.parametrize(
    "text, message, hint",
    [
        ('databse = "x"', "there is no setting 'databse'", "did you mean 'database'?"),
        (
            "[effects]\nconcurency = 3",
            "there is no setting 'effects.concurency'",
            "did you mean 'concurrency'?",
        ),
        (
            '[inboxes.crm]\nurl = "https://x/y"\ncolour = 1',
            "there is no setting 'inboxes.crm.colour'",
            "one of",
        ),
        ("[effects]\nconcurrency = 'many'", "effects.concurrency", "docs/settings.md"),
        ("[listen]\nport = 70000", "listen.port must be from 0 to 65535", ""),
        ("[effects]\nlease_us = 0", "effects.lease_us must be more than 0", ""),
        ("roles = []", "roles is empty", "api, worker, reconciler"),
        ('roles = ["worker", "cleaner"]', "roles", ""),
        ('point = "call.marked"', "needs testing = true", "remove point"),
        ('[egress]\nprivate_networks = ["10.0.0.0/40"]', "egress.private_networks", "10.0.0.0/8"),
        ("this is no TOML", "is not TOML", ""),
    ],
)
def test_one_refusal_names_the_key_and_what_to_write(
    tmp_path: Path, text: str, message: str, hint: str
) -> None:
    failed = refused(written(tmp_path, text))
    assert message in failed.message
    assert hint in failed.hint


def test_a_refusal_names_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, "[effects]\nconcurrency = 'many'")
    assert str(path) in refused(path).message


@pytest.mark.parametrize(
    "name, value, message",
    [
        ("DOONCE_DATABSE", "x", "DOONCE_DATABSE: there is no setting 'databse'"),
        ("DOONCE_LISTEN__PORT", "many", "DOONCE_LISTEN__PORT: 'many' is no whole number"),
        ("DOONCE_TESTING", "perhaps", "is no true or false"),
        ("DOONCE_LISTEN", "x", "listen is a table"),
        ("DOONCE_LISTEN__PORT", "70000", "listen.port must be from 0"),
    ],
)
def test_a_variable_that_is_wrong_is_named(name: str, value: str, message: str) -> None:
    assert message in refused(None, {name: value}).message


def test_a_missing_file_says_how_to_name_another(tmp_path: Path) -> None:
    failed = refused(tmp_path / "none.toml")
    assert "cannot be read" in failed.message
    assert "--config" in failed.hint


def test_points_are_armed_for_tests_alone(tmp_path: Path) -> None:
    settings = load(None, {}, testing=True, point="call.marked", point_action="stop", point_hit=2)
    armed = settings.armed_point()
    assert armed is not None
    assert (armed.name, armed.action, armed.hit) == ("call.marked", PointAction.STOP, 2)


@pytest.mark.parametrize(
    "inbox, message",
    [
        ({"url": "crm.example/x", "credential": "a"}, "is no address"),
        ({"url": "https://crm.example/x"}, "needs one credential"),
        ({"url": "https://crm.example/x", "credential": "a", "credential_file": "b"}, "needs one credential"),
        ({"url": "https://crm.example/x", "credential_file": "/nowhere/at/all"}, "holds no credential"),
    ],
)
def test_an_inbox_needs_an_address_and_one_credential(inbox: dict[str, str], message: str) -> None:
    settings = settings_from({"inboxes": {"crm": inbox}})
    with pytest.raises(Invalid, match=message):
        settings.open_inboxes()


def test_a_table_that_is_set_in_part_keeps_the_rest_of_its_place() -> None:
    plain = Settings()
    given = {
        "completions": {"poll_seconds": 9.0},
        "completion": {"policy": {"base_us": 7}},
        "handler": {"policy": {"base_us": 7}},
    }
    settings = settings_from(given)
    assert settings.completions == dataclasses.replace(plain.completions, poll_seconds=9.0)
    for name in ("completion", "handler"):
        assert getattr(settings, name).policy == replace(getattr(plain, name).policy, base_us=7)


def test_settings_from_code_are_checked_alike() -> None:
    with pytest.raises(Invalid, match="there is no setting 'egres'"):
        settings_from({"egres": {}})
    assert settings_from({"egress": {"plain_http": True}}).egress.plain_http


def test_the_keys_are_beside_a_sqlite_file_or_in_the_working_directory(tmp_path: Path) -> None:
    beside = settings_from({"database": f"sqlite:///{tmp_path}/a.db"})
    assert key_file(beside) == tmp_path / "a.db.keys"
    server = {"database": "postgresql://doonce@db/doonce"}
    assert key_file(settings_from(server)) == Path("doonce.keys")
    assert key_file(settings_from(server | {"key_file": "/etc/keys"})) == Path("/etc/keys")


@pytest.mark.parametrize("name", ["ended_kept_us", "dead_kept_us"])
def test_work_that_has_ended_stays_for_an_hour_at_least(name: str) -> None:
    assert getattr(settings_from({"retention": {name: 3_600_000_000}}).retention, name) == 3_600_000_000
    with pytest.raises(Invalid, match=rf"retention\.{name} must be at least 3600000000") as refused:
        settings_from({"retention": {name: 3_599_999_999}})
    assert "docs/operating.md" in refused.value.hint


# --- weights ------------------------------------------------------------------------------------------------------


def test_weights_are_given_by_organization_in_the_file_and_by_variable(tmp_path: Path) -> None:
    path = written(tmp_path, "[weights]\nacme = 3\n")
    settings = load(path, {"DOONCE_WEIGHTS__OTHER": "2"})
    assert settings.weights == {"acme": 3, "other": 2}
    assert settings.engine().weights == settings.weights


@pytest.mark.parametrize(
    "written_as, says",
    [
        ("0", "weights.acme must be from 1 to 100"),
        ("-1", "weights.acme must be from 1 to 100"),
        ("101", "weights.acme must be from 1 to 100"),
        ('"3"', "weights.acme is no whole number"),
        ("1.5", "weights.acme is no whole number"),
        ("true", "weights.acme is no whole number"),
        ("{ main = 3 }", "weights.acme is no whole number"),
    ],
)
def test_a_weight_that_is_none_is_refused_by_its_name(tmp_path: Path, written_as: str, says: str) -> None:
    error = refused(written(tmp_path, f"[weights]\nacme = {written_as}\nother = 1\n"))
    assert says in str(error)


def test_a_weight_in_a_variable_that_is_none_is_refused_by_the_variable() -> None:
    assert "DOONCE_WEIGHTS__ACME" in str(refused(environment={"DOONCE_WEIGHTS__ACME": "heavy"}))
    assert "must be from 1 to 100" in str(refused(environment={"DOONCE_WEIGHTS__ACME": "0"}))
