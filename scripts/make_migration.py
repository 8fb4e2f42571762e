"""Write the migration that takes the newest one's schema to what the owners' tables say now.

    PYTHONPATH=src python scripts/make_migration.py "what it adds"

The steps that exist are run on a new SQLite file, Alembic compares the result with the metadata, and the difference is
written as explicit operations, one function a table. A person reads the result before it is committed: renames,
data, and what an engine needs beside it (`on_mysql`) are not found this way. `--first` replaces the first migration.
What only adds is written before, with the tables that still have what goes; then `--after` writes what takes away or
tightens, and a person fills its `UNTIL`: until it is applied, the verifier names everything that is missing there.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from alembic.autogenerate import produce_migrations, render_python_code
from alembic.operations import ops
from alembic.runtime.migration import MigrationContext
from sqlalchemy.dialects import mysql, postgresql, sqlite

import doonce
from doonce.db import migrate, schema, steps
from doonce.db.schema import metadata

HEADER = '''"""{title}."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from doonce.db.migrations.kinds import BODY, KEY, NAME, TEXT, on_mysql

revision = "{revision}"
down_revision = {down!r}
branch_labels = None
depends_on = None


'''
KINDS = {"NAME": schema.IDENTITY, "KEY": schema.KEY, "TEXT": schema.TEXT, "BODY": schema.BODY}
CLOCK = '    op.execute("INSERT INTO doonce_clock (id, now_us) VALUES (1, 0)")\n'


def import_tables() -> None:
    """Import every owner's tables, so that the metadata is whole. The application's side has its own."""
    for module in pkgutil.walk_packages(doonce.__path__, "doonce."):
        owner = module.name.removeprefix("doonce.").split(".")[0]
        if module.name.endswith((".tables", ".incarnation")) and owner != "runtime":
            importlib.import_module(module.name)


def difference(*, first: bool) -> list[ops.MigrateOperation]:
    """What the newest migration's schema lacks."""
    with tempfile.TemporaryDirectory() as folder:
        engine = sa.create_engine(f"sqlite:///{folder}/now.db")
        with engine.begin() as connection:
            if not first:
                migrate.run_steps(connection, steps.head())
            options = {
                "version_table": migrate.VERSION_TABLE,
                "compare_type": True,
                "include_object": lambda made, *_: (
                    not isinstance(made, sa.Index) or schema.is_made_on(made, "sqlite")
                ),
            }
            script = produce_migrations(MigrationContext.configure(connection, opts=options), metadata)
        engine.dispose()
    found = script.upgrade_ops
    return list(found.ops) if found is not None else []


def spelled(kind: sa.types.TypeEngine[Any]) -> list[str]:
    """A type as each engine has it; two names that differ on one engine only are two kinds."""
    return [
        kind.compile(dialect=engine) for engine in (sqlite.dialect(), postgresql.dialect(), mysql.dialect())
    ]


def kind_of(what: str, value: Any, _: object) -> str | bool:
    """The name that migrations have for a column's type."""
    if what != "type" or not isinstance(value, sa.Text | sa.LargeBinary):
        return False
    return next((name for name, kind in KINDS.items() if spelled(kind) == spelled(value)), False)


def grouped(operations: list[ops.MigrateOperation]) -> dict[str, list[ops.MigrateOperation]]:
    """Operations by the table that they are about, in their order."""
    tables: dict[str, list[ops.MigrateOperation]] = {}
    for operation in operations:
        tables.setdefault(str(getattr(operation, "table_name", "other")), []).append(operation)
    return tables


def render(
    title: str, revision: str, down: str | None, operations: list[ops.MigrateOperation], *, after: bool
) -> str:
    """The module's text, before formatting."""
    tables = grouped(operations)
    text = HEADER.format(title=title, revision=revision, down=down)
    text += f"{steps.UNTIL} = ()\n\n\n" if after else ""
    text += "def upgrade() -> None:\n"
    text += "".join(f"    _{name}()\n" for name in tables)
    text += CLOCK if down is None else ""
    for name, group in tables.items():
        code = render_python_code(ops.UpgradeOps(ops=group), render_item=kind_of)
        lines = [line for line in code.splitlines() if not line.strip().startswith("#")]
        text += f"\n\ndef _{name}() -> None:\n" + "\n".join(f"    {line}" for line in lines if line) + "\n"
    return text


def main() -> int:
    """Write the file and format it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("title")
    parser.add_argument("--first", action="store_true")
    parser.add_argument("--after", action="store_true")
    arguments = parser.parse_args()
    import_tables()
    down = None if arguments.first else steps.head()
    revision = f"{int(down or 0) + 1:04d}"
    operations = difference(first=arguments.first)
    if not operations:
        print("the migrations already give this schema")
        return 0
    folder: Path = steps.MIGRATIONS / "versions"
    for old in folder.glob(f"v{revision}_*.py"):
        old.unlink()
    name = re.sub(r"[^a-z0-9]+", "_", arguments.title.lower()).strip("_")
    path = folder / f"v{revision}_{'after_' if arguments.after else ''}{name}.py"
    path.write_text(render(arguments.title, revision, down, operations, after=arguments.after))
    ruff = [sys.executable, "-m", "ruff"]
    subprocess.run([*ruff, "check", "--fix", "--quiet", "--select", "I,F401", str(path)], check=True)
    subprocess.run([*ruff, "format", "--quiet", str(path)], check=True)
    print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
