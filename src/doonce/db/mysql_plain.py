"""Statements for a server on the MySQL wire that has neither JSON_TABLE nor SKIP LOCKED: TiDB (`db/tidb.py`).

A batch is as many selects of its values, joined by UNION ALL. So that few texts are prepared, their number is rounded
up, and those that are left over have a condition that is false. Nothing is skipped because it is locked: what a claim
may take is read without a lock, and locked by its key afterwards.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

from doonce.db.faults import RefusedData
from doonce.db.statement import Compiled, Rows, Statement
from doonce.db.transaction import Params

ROWS: Final = re.compile(r"ROWS\[ \? : (.+?) \]")
"""How `db/mysql_sql.py` writes a batch; in the brackets the select of one row."""
PLACEHOLDERS_MAX: Final = 65_535
"""As many has one statement of the protocol."""
STEP: Final = 256
TEXTS_MAX: Final = 4_096


def spelled(statement: Statement, params: Params) -> tuple[str, list[Any]]:
    """The text for batches of so many rows, and its arguments. Raises `RefusedData` for more than a statement takes."""
    return spell(statement.mysql_plain, params)


def spell(compiled: Compiled, params: Params) -> tuple[str, list[Any]]:
    """The same for a statement that is compiled already."""
    arguments: list[Any] = []
    sizes: list[int] = []
    for slot in compiled.slots:
        if not isinstance(slot, Rows):
            arguments.append(slot.value(params))
            continue
        rows = slot.rows(params)
        sizes.append(size_of(len(rows)))
        for row in rows:
            arguments += row
            arguments.append(1)
        arguments += [*[None] * slot.width, 0] * (sizes[-1] - len(rows))
    if len(arguments) > PLACEHOLDERS_MAX:
        raise RefusedData(f"{len(arguments)} values are too many for one statement")
    return (text_of(compiled.text, tuple(sizes)) if sizes else compiled.text), arguments


def size_of(rows: int) -> int:
    """How many rows the statement for so many has room for: a power of two, later a multiple of `STEP`."""
    if rows <= STEP:
        return 1 << max(rows - 1, 0).bit_length()
    return -(-rows // STEP) * STEP


@lru_cache(maxsize=TEXTS_MAX)
def text_of(template: str, sizes: tuple[int, ...]) -> str:
    """The text with room for so many rows in each of its batches, in their order."""
    left = iter(sizes)
    return ROWS.sub(lambda found: f"({' UNION ALL '.join([found[1]] * next(left))})", template)
