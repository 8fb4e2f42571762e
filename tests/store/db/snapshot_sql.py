"""The SQL of every registered statement, as a reviewer reads it. `python -m tests.store.db.snapshot_sql` writes it."""

import importlib
import pkgutil
import re
from pathlib import Path

import doonce
from doonce.db.statement import Column, Compiled, Constant, DialectName, Rows, Scalar, Slot, Statement

FOLDER = Path(__file__).parent.parent / "snapshots"
PLAIN_FORM = "mysql_plain"
FORMS = (*(dialect.value for dialect in DialectName), PLAIN_FORM)
"""The dialects, and the form of one of them that TiDB is spoken to in."""
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


def snapshot(form: str) -> str:
    """All statements in one form, by name."""
    import_everything()
    parts = [f"-- Every statement on {form}. Written by `make snapshots`; review it like code.\n"]
    for name in sorted(name for name in Statement.registry if not name.startswith("test.")):
        compiled = compiled_in(form, Statement.registry[name])
        text = BREAKS.sub("\n", compiled.text)
        parameters = ", ".join(described(slot) for slot in compiled.slots)
        parts.append(f"-- {name}\n{text};\n-- {parameters or 'no parameters'}\n")
    return "\n".join(parts)


def compiled_in(form: str, statement: Statement) -> Compiled:
    """A statement in one of the forms."""
    return statement.mysql_plain if form == PLAIN_FORM else statement.on(DialectName(form))


def file_of(form: str) -> Path:
    """Where a form's snapshot is kept."""
    return FOLDER / f"{form}.sql"


if __name__ == "__main__":
    for each in FORMS:
        file_of(each).write_text(snapshot(each))
