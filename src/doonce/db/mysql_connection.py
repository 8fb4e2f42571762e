"""One connection of the MySQL wire: its prepared statements, its rows, and what kind of server it leads to."""

from __future__ import annotations

import math
import time
from collections.abc import Container, Iterable, Iterator, Sequence
from typing import Any, Final

from doonce.db import galera, mysql_plain, tidb
from doonce.db.statement import Statement
from doonce.db.transaction import Params

BEGIN: Final = "START TRANSACTION READ WRITE"
BEGIN_READ: Final = "START TRANSACTION READ ONLY"
IN_TRANSACTION: Final = 1
TEXT_TYPES: Final = frozenset({15, 253, 254})
"""Numbers of the protocol: a bit of the server's status, and the types of short texts."""


class MysqlRow:
    """A row, read by position or by column name."""

    __slots__ = ("_names", "_values")

    def __init__(self, values: tuple[Any, ...], names: dict[str, int]) -> None:
        self._values = values
        self._names = names

    def __getitem__(self, key: int | str) -> Any:
        return self._values[key if isinstance(key, int) else self._names[key]]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


class PooledConnection:
    """One connection with its prepared statements, and the fence slot that it writes where it shares one.

    `certifies`: it leads to where a lock alone is not relied on: `of_tidb`, or `of_galera`, a node of such a cluster.
    `plain`: its statements are those of the plain form. `rests_seconds_max`: how long it may be left unused.
    """

    def __init__(self, raw: Any, slot: int) -> None:
        self.raw = raw
        self.slot = slot
        self.certifies = False
        self.of_tidb = False
        self.of_galera = False
        self.plain = False
        self._prepared: dict[str, Any] = {}
        self.committing = False
        self.rests_seconds_max = math.inf
        self._rests_since = time.monotonic()

    async def ask(self, statement: Statement, params: Params) -> list[MysqlRow]:
        """Rows of a statement, in the form that the server has."""
        if self.plain:
            texts = statement.mysql_plain.texts
            return await self.fetch(*mysql_plain.spelled(statement, params), texts=texts)
        compiled = statement.mysql
        return await self.fetch(compiled.text, compiled.arguments(params), texts=compiled.texts)

    async def begin(self, *, readonly: bool = False) -> None:
        """Begin a transaction, which on TiDB takes its locks as it goes; on a node one that can be told from others."""
        await self.execute(tidb.BEGIN if self.of_tidb else BEGIN_READ if readonly else BEGIN)
        if self.of_galera and not readonly:
            await self.execute(galera.BEGINNING)

    async def fetch(
        self, text: str, arguments: Sequence[Any] = (), *, texts: Container[str] = ()
    ) -> list[MysqlRow]:
        """Rows of one statement, prepared once per connection. `texts`: columns that hold text."""
        statement = self._prepared.get(text)
        if statement is None:
            statement = self._prepared[text] = await self.raw.prepare(text)
        result = await statement.execute(arguments)
        if not result.description:
            return []
        names = {column[0]: position for position, column in enumerate(result.description)}
        positions = text_positions(result.description, texts)
        return [MysqlRow(decoded(row, positions), names) for row in result.rows or ()]

    async def execute(self, text: str, arguments: Sequence[Any] = ()) -> None:
        """Run one statement without rows, as text."""
        async with self.raw.cursor() as cursor:
            await cursor.execute(text, arguments or None)

    async def insert(self, text: str, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert rows as one set."""
        async with self.raw.cursor() as cursor:
            await cursor.executemany(text, rows)

    def in_transaction(self) -> bool:
        """Whether the server's last word says that a transaction is open."""
        return bool(self.raw.server_status & IN_TRANSACTION)

    def forget(self) -> None:
        """Prepare every statement anew: a table may have changed under one."""
        self._prepared.clear()

    def rest(self) -> None:
        """Nobody uses it from now on."""
        self._rests_since = time.monotonic()

    def is_fresh(self) -> bool:
        """Whether it has not rested for so long that the server may be about to close it."""
        return time.monotonic() - self._rests_since <= self.rests_seconds_max

    async def close(self) -> None:
        """Tell the server, and close."""
        await self.raw.ensure_closed()

    def terminate(self) -> None:
        """Drop the connection without a word."""
        self.raw.close()


def text_positions(description: Iterable[Sequence[Any]], texts: Container[str] = ()) -> list[int]:
    """Which columns of a result hold texts, although the server may call them bytes, or long ones.

    A value that was cast and went through a table of the server's own is one of any length to MySQL.
    """
    return [
        position
        for position, column in enumerate(description)
        if column[1] in TEXT_TYPES or column[0] in texts
    ]


def decoded(row: tuple[Any, ...], texts: Sequence[int]) -> tuple[Any, ...]:
    """Identities are bytes to the server, so that nothing folds or pads them; here they are text again."""
    if not any(isinstance(row[position], bytes) for position in texts):
        return row
    values = list(row)
    for position in texts:
        if isinstance(values[position], bytes):
            values[position] = values[position].decode()
    return tuple(values)
