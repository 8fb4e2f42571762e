"""The SQL of every registered statement, as a reviewer reads it. `python -m tests.store.db.snapshot_sql` writes it."""

import importlib
import pkgutil
import re
from pathlib import Path

import doonce
from doonce.db.statement import Column, Constant, DialectName, Rows, Scalar, Slot, Statement

FOLDER = Path(__file__).parent.parent / "snapshots"
CLAUSES = (
    "FROM", "WHERE", "SET", "VALUES", "ORDER BY", "GROUP BY", "LIMIT", "FOR UPDATE", "FOR SHARE", "RETURNING",
    "ON CONFLICT", "JOIN", "LEFT OUTER JOIN",
)  # fmt: skip
BREAKS = re.compile(rf" (?=(?:{'|'.join(CLAUSES)})\b)")


def import_everything() -> None:
    """Import every module of the package, so that every statement is registered."""
    for module in pkgutil.walk_packages(doonce.__path__, "doonce."):
        if not module.name.endswith("__main__") and ".migrations" not in module.name:
            importlib.import_module(module.name)


def described(slot: Slot) -> str:
    """Where a positional parameter comes from."""
    match slot:
        case Scalar(name):
            return name
        case Constant(constant):
            return repr(constant)
        case Rows(name):
            return f"{name} (rows as JSON)"
        case Column(name, position):
            return f"{name}[{position}]"


def snapshot(dialect: DialectName) -> str:
    """All statements on one dialect, by name."""
    import_everything()
    parts = [f"-- Every statement on {dialect.value}. Written by `make snapshots`; review it like code.\n"]
    for name in sorted(name for name in Statement.registry if not name.startswith("test.")):
        compiled = Statement.registry[name].on(dialect)
        text = BREAKS.sub("\n", compiled.text)
        parameters = ", ".join(described(slot) for slot in compiled.slots)
        parts.append(f"-- {name}\n{text};\n-- {parameters or 'no parameters'}\n")
    return "\n".join(parts)


def file_of(dialect: DialectName) -> Path:
    """Where a dialect's snapshot is kept."""
    return FOLDER / f"{dialect.value}.sql"


if __name__ == "__main__":
    for each in DialectName:
        file_of(each).write_text(snapshot(each))
