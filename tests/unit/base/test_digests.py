"""Digests: what they are over, and that a tag keeps kinds apart."""

import hashlib

import pytest

from doonce.base.digests import check_digest, digest_bytes, digest_document
from doonce.base.errors import Invalid


def test_a_documents_digest_is_over_tag_nul_and_canonical_form() -> None:
    expected = hashlib.sha256(b'view\x00{"a":1,"b":[true]}').hexdigest()
    assert digest_document("view", {"b": [True], "a": 1}) == f"sha256:{expected}"


def test_tags_keep_kinds_apart() -> None:
    assert digest_document("view", {}) != digest_document("pack", {})


def test_raw_bytes_have_the_digest_that_anybody_computes() -> None:
    assert digest_bytes(b"abc") == f"sha256:{hashlib.sha256(b'abc').hexdigest()}"
    assert digest_bytes(b'{"a":1}') != digest_bytes(b'{"a": 1}')


@pytest.mark.parametrize("tag", ["", "View", "a b", "a\x00", "é", "a" * 65, "1a"])
def test_a_tag_is_a_short_lower_case_word(tag: str) -> None:
    with pytest.raises(Invalid):
        digest_document(tag, {})


def test_a_document_that_is_not_exact_has_no_digest() -> None:
    with pytest.raises(Invalid):
        digest_document("view", {"ratio": 0.1})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "sha256:",
        "sha256:" + "0" * 63,
        "sha256:" + "A" * 64,
        "md5:" + "0" * 64,
        "sha256:" + "0" * 64 + "\n",
    ],
)
def test_what_is_not_spelled_like_a_digest_is_refused_by_name(text: str) -> None:
    with pytest.raises(Invalid, match="payload_digest"):
        check_digest("payload_digest", text)
    assert check_digest("payload_digest", digest_bytes(b"")) == digest_bytes(b"")
