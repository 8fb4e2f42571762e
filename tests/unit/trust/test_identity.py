"""F6: whoever holds an identity or a scope got it from a verification."""

import copy
import pickle
from typing import Any

import pytest

from doonce.base.errors import Forbidden, Invalid, MissingOrDenied, Unauthenticated
from doonce.base.secrets import Secret
from doonce.trust import Claims, Identity, InstallationConfig, Verifier, WorkScope, embedded

DIGEST = "sha256:" + "a" * 64
CONFIG = InstallationConfig("acme", "main", frozenset({"crm.sync", "crm.read"}))


def scope(identity: Identity | None = None) -> WorkScope:
    return (identity or embedded(CONFIG)).scope("acme", "main", "crm.sync", DIGEST)


class OneToken(Verifier):
    """A deployment's own verifier."""

    async def claims(self, credential: Secret) -> Claims | None:
        if credential == Secret("good"):
            return Claims("robot", "acme", "main", frozenset({"crm.sync"}))
        return None


async def test_a_verified_identity_makes_scopes_of_its_own() -> None:
    identity = await OneToken().verify(Secret("good"))
    assert (identity.subject, identity.org, identity.installation) == ("robot", "acme", "main")
    made = scope(identity)
    assert (made.org, made.installation, made.capability, made.binding_digest) == (
        "acme",
        "main",
        "crm.sync",
        DIGEST,
    )
    assert made == scope()
    assert hash(made) == hash(scope())
    assert made != identity


async def test_an_unknown_credential_is_unauthenticated() -> None:
    with pytest.raises(Unauthenticated):
        await OneToken().verify(Secret("bad"))


@pytest.mark.parametrize("kind", [WorkScope, Identity])
def test_f6_there_is_no_public_constructor(kind: Any) -> None:
    forgeries: list[tuple[Any, ...]] = [
        (),
        ("acme", "main", "crm.sync", DIGEST),
        ("robot", "acme", "main", CONFIG),
    ]
    for arguments in forgeries:
        with pytest.raises(TypeError):
            kind(*arguments)
    with pytest.raises(TypeError):
        kind(org="acme")
    with pytest.raises(TypeError):
        type("Forged", (kind,), {})


@pytest.mark.parametrize("made", [scope(), embedded(CONFIG)], ids=["scope", "identity"])
def test_f6_a_verified_value_is_not_changed_copied_into_another_or_unpickled(made: Any) -> None:
    for name in ("org", "_values", "other"):
        with pytest.raises(AttributeError):
            setattr(made, name, ("evil",))
        with pytest.raises(AttributeError):
            delattr(made, name)
    assert copy.copy(made) is made
    assert copy.deepcopy(made) is made
    with pytest.raises(TypeError):
        pickle.dumps(made)
    assert not hasattr(made, "__dict__")


@pytest.mark.parametrize(
    "org,installation", [("other", "main"), ("acme", "other"), ("", ""), ("acme", "MAIN")]
)
def test_another_scope_looks_missing(org: str, installation: str) -> None:
    identity = embedded(CONFIG)
    assert not identity.covers(org, installation)
    for capability in ("crm.sync", "crm.unknown"):
        with pytest.raises(MissingOrDenied) as denied:
            identity.scope(org, installation, capability, DIGEST)
        assert str(denied.value) == "there is nothing here for this identity"


def test_a_capability_that_is_lacking_within_the_own_scope_is_forbidden() -> None:
    with pytest.raises(Forbidden):
        embedded(CONFIG).scope("acme", "main", "crm.write", DIGEST)
    assert embedded(CONFIG).covers("acme", "main")


def test_a_text_that_is_no_digest_is_invalid() -> None:
    with pytest.raises(Invalid):
        embedded(CONFIG).scope("acme", "main", "crm.sync", "latest")


@pytest.mark.parametrize(
    "config",
    [
        InstallationConfig("", "main", frozenset({"a"})),
        InstallationConfig("acme", "m\x00", frozenset({"a"})),
        InstallationConfig("acme", "main", frozenset({"a" * 129})),
    ],
)
def test_an_embedding_application_cannot_be_for_nobody(config: InstallationConfig) -> None:
    with pytest.raises(Invalid):
        embedded(config)
