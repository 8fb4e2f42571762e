"""Secrets have a type that cannot be printed (DESIGN rule 8)."""

import hmac
from typing import Final, NoReturn

from doonce.base.errors import Invalid

SHOWN: Final = "[secret]"


class Secret:
    """A credential that shows itself only through `reveal`.

    Its repr, text and every format of it are `[secret]`; pickling it, and whatever else would serialize it,
    raises. It is immutable, compares in constant time and is not hashable, so it becomes no key of anything.
    """

    __slots__ = ("_value",)

    _value: bytes

    def __init__(self, value: str | bytes) -> None:
        raw = _encoded(value) if isinstance(value, str) else value
        if not raw:
            raise Invalid("a secret must be a text that is not empty and can be stored")
        object.__setattr__(self, "_value", raw)

    def reveal(self) -> str:
        """Return the secret as text; raises `Invalid` when it is not UTF-8."""
        text = _decoded(self._value)
        if text is None:
            raise Invalid("this secret is not a text")
        return text

    def reveal_bytes(self) -> bytes:
        """Return the secret as bytes."""
        return self._value

    def __repr__(self) -> str:
        return SHOWN

    __str__ = __repr__

    def __format__(self, _spec: str) -> str:
        return SHOWN

    def __setattr__(self, _name: str, _value: object) -> NoReturn:
        raise AttributeError("a secret does not change")

    def __delattr__(self, _name: str) -> NoReturn:
        raise AttributeError("a secret does not change")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        return hmac.compare_digest(self._value, other._value)

    __hash__ = None  # type: ignore[assignment]  # the documented way to be unhashable

    def __copy__(self) -> "Secret":
        return self

    def __deepcopy__(self, _memo: object) -> "Secret":
        return self

    def __reduce_ex__(self, _protocol: object) -> NoReturn:
        raise TypeError("a secret is not serialized")


# A codec's error carries what it could not code. It ends here, so that no `Invalid` has it as its context.


def _encoded(value: str) -> bytes | None:
    try:
        return value.encode()
    except UnicodeEncodeError:
        return None


def _decoded(value: bytes) -> str | None:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return None
