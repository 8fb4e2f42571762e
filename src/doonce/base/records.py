"""Immutable records of the hot path.

A frozen dataclass sets each field through `object.__setattr__`: with some thirty records made on the way of one effect,
that came to a tenth of its cost. A frozen struct is made in C; everything else about it reads the same.
"""

import msgspec


class Record(msgspec.Struct, frozen=True, gc=False):
    """An immutable value. Change one with `msgspec.structs.replace`. It never takes part in a reference cycle."""
