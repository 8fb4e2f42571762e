"""Seals open only where they were made, only with their key, and nothing of a secret shows."""

import pickle
import stat
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from doonce.base.errors import Invalid, Unavailable
from doonce.base.limits import LIMITS
from doonce.base.secrets import Secret
from doonce.principals.vault import KeyRing, Vault, ensure_key_ring, load_key_ring, save_key_ring

SECRET = Secret("s3cret-värde")


def test_a_sealed_secret_opens_and_is_not_in_the_clear() -> None:
    vault = Vault(KeyRing.generate())
    token = vault.seal("prn_1", 2, 3, SECRET)
    assert vault.open(token) == SECRET
    assert SECRET.reveal_bytes() not in token.sealed
    assert vault.seal("prn_1", 2, 3, SECRET).sealed != token.sealed


def test_a_seal_opens_for_no_other_principal_generation_or_version() -> None:
    vault = Vault(KeyRing.generate())
    token = vault.seal("prn_1", 2, 3, SECRET)
    moved = [
        replace(token, principal_id="prn_2"),
        replace(token, generation=3),
        replace(token, version=2),
        replace(token, generation=23, version=3),
    ]
    for other in moved:
        with pytest.raises(Unavailable):
            vault.open(other)


@pytest.mark.parametrize("at", [0, 12, 20, -1])
def test_changed_bytes_do_not_open(at: int) -> None:
    vault = Vault(KeyRing.generate())
    token = vault.seal("prn_1", 1, 1, SECRET)
    changed = bytearray(token.sealed)
    changed[at] ^= 1
    with pytest.raises(Unavailable):
        vault.open(replace(token, sealed=bytes(changed)))
    with pytest.raises(Unavailable):
        vault.open(replace(token, sealed=token.sealed[:5]))


def test_a_missing_key_and_a_wrong_key_are_named_and_nothing_else_is() -> None:
    ring = KeyRing.generate()
    token = Vault(ring).seal("prn_1", 1, 1, SECRET)
    other = KeyRing.generate()
    with pytest.raises(Unavailable, match=ring.current) as missing:
        Vault(other).open(token)
    wrong = Vault(KeyRing(ring.current, {ring.current: other.keys[other.current]}))
    with pytest.raises(Unavailable, match=ring.current) as refused:
        wrong.open(token)
    for caught in (missing, refused):
        assert caught.value.hint
        assert "s3cret" not in f"{caught.value!r}{caught.value.hint}"
        assert caught.value.__cause__ is None


def test_a_ring_with_a_new_key_still_opens_what_the_old_one_sealed() -> None:
    ring = KeyRing.generate()
    token = Vault(ring).seal("prn_1", 1, 1, SECRET)
    grown = Vault(ring.with_new_key())
    assert grown.open(token) == SECRET
    assert grown.seal("prn_1", 1, 2, SECRET).key_id == grown.key_id != ring.current


def test_a_secret_at_its_limit_is_sealed_and_one_over_is_not() -> None:
    vault = Vault(KeyRing.generate())
    vault.seal("prn_1", 1, 1, Secret("x" * LIMITS.secret_bytes_max))
    with pytest.raises(Invalid):
        vault.seal("prn_1", 1, 1, Secret("x" * (LIMITS.secret_bytes_max + 1)))


def test_a_key_ring_does_not_print_or_pickle_its_keys() -> None:
    ring = KeyRing.generate()
    assert "[secret]" in repr(ring)
    with pytest.raises(TypeError):
        pickle.dumps(ring)


def test_the_key_file_is_made_once_and_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    with ThreadPoolExecutor(8) as pool:
        rings = list(pool.map(ensure_key_ring, [path] * 8))
    assert {ring.current for ring in rings} == {load_key_ring(path).current}
    assert all(ring.keys == rings[0].keys for ring in rings)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_saved_ring_is_read_back_whole(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    grown = ensure_key_ring(path).with_new_key()
    save_key_ring(path, grown)
    read = load_key_ring(path)
    assert (read.current, dict(read.keys)) == (grown.current, dict(grown.keys))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "mode,accepted", [(0o600, True), (0o400, True), (0o440, True), (0o644, False), (0o660, False)]
)
def test_a_key_file_that_others_can_read_or_write_is_refused(
    tmp_path: Path, mode: int, accepted: bool
) -> None:
    path = tmp_path / "keys.toml"
    ensure_key_ring(path)
    path.chmod(mode)
    if accepted:
        load_key_ring(path)
        return
    with pytest.raises(Invalid, match="open to others") as refused:
        load_key_ring(path)
    assert "chmod 600" in refused.value.hint


GOOD = "A" * 43 + "="


@pytest.mark.parametrize(
    "text",
    [
        "no toml",
        "",
        'current = "a"',
        f'current = "b"\n[keys]\na = "{GOOD}"',
        f'current = ["a"]\n[keys]\na = "{GOOD}"',
        f'current = "a"\nmore = 1\n[keys]\na = "{GOOD}"',
        'current = "a"\n[keys]\na = "AAAA"',
        'current = "a"\n[keys]\na = 5',
        'current = "a"\n[keys]\na = "ä"',
        f'current = "a b"\n[keys]\n"a b" = "{GOOD}"',
        "x" * 65_537,
    ],
)
def test_a_file_that_is_no_key_ring_is_refused_without_showing_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "keys.toml"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(Invalid) as refused:
        load_key_ring(path)
    assert GOOD not in str(refused.value)


def test_a_missing_key_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Invalid, match="cannot be read"):
        load_key_ring(tmp_path / "absent.toml")
