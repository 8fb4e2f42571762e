"""Every error class has one status, one spelling, and comes back as itself."""

import pytest

from doonce.base.errors import DoonceError, ErrorClass, Internal, Stale
from doonce.wire import ErrorDocument, decode, encode, error_document, raised_from, status_of
from doonce.wire.faults import ErrorBody


@pytest.mark.parametrize("error_class", ErrorClass)
def test_a_class_comes_back_as_itself(error_class: ErrorClass) -> None:
    body = ErrorBody(kind=error_class, message="what", hint="what next")
    raised = raised_from(decode(encode(ErrorDocument(error=body)), ErrorDocument, bytes_max=1_000))

    assert (raised.error_class, raised.message, raised.hint) == (error_class, "what", "what next")
    assert 400 <= status_of(error_class) <= 599


def test_statuses_are_distinct() -> None:
    assert len({status_of(one) for one in ErrorClass}) == len(ErrorClass)


def test_the_document_shows_class_message_and_hint_and_never_the_cause() -> None:
    error: DoonceError = Stale("the lease is over", axis="lease")
    error.__cause__ = ValueError("a secret")

    assert encode(error_document(error)) == (
        b'{"error":{"class":"STALE","message":"the lease is over","hint":""}}'
    )
    assert encode(error_document(Internal("x"))).startswith(b'{"error":{"class":"INTERNAL"')
