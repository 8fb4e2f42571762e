"""The error tree: closed, complete, safe to show and to send elsewhere."""

import pickle

import pytest

from doonce.base.errors import DoonceError, ErrorClass, Internal, Invalid, Stale

CONCRETE = DoonceError.__subclasses__()


def test_every_class_on_the_wire_has_exactly_one_exception() -> None:
    assert sorted(kind.error_class for kind in CONCRETE) == sorted(ErrorClass)
    assert {kind.value for kind in ErrorClass} == {kind.name for kind in ErrorClass}


@pytest.mark.parametrize("kind", CONCRETE)
def test_an_error_says_what_is_wrong_and_what_to_do(kind: type[DoonceError]) -> None:
    error = kind("the lane is full", hint="drain it")
    assert (error.message, error.hint, error.axis, str(error)) == (
        "the lane is full",
        "drain it",
        "",
        "the lane is full",
    )


@pytest.mark.parametrize("kind", CONCRETE)
def test_an_error_survives_pickling(kind: type[DoonceError]) -> None:
    axis = "lease" if kind is Stale else ""
    again = pickle.loads(pickle.dumps(kind("m", hint="h", axis=axis)))
    assert (type(again), again.message, again.hint, again.axis) == (kind, "m", "h", axis)


def test_only_a_stale_error_names_an_axis() -> None:
    assert Stale("the lease has moved", axis="lease").axis == "lease"
    with pytest.raises(ValueError, match="axis"):
        Invalid("m", axis="lease")


def test_an_error_of_no_class_is_internal() -> None:
    assert DoonceError("m").error_class is Internal.error_class is ErrorClass.INTERNAL


def test_a_class_prints_as_its_wire_name() -> None:
    assert f"{ErrorClass.STALE} {ErrorClass.STALE!s}" == "STALE STALE"
