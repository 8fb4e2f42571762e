"""One definition of each statement; a text for each engine and placeholder."""

import re

import pytest

from doonce.base.errors import Internal
from doonce.runtime import inbox_store, outbox_store, relay_claim, relay_store, schema
from doonce.runtime.model import OutboxState
from doonce.runtime.statements import Engine, Placeholder, Statement, constant, text
from doonce.runtime.tables import metadata

STATEMENTS = {
    one.name: one
    for module in (outbox_store, relay_claim, relay_store, inbox_store, schema)
    for found in vars(module).values()
    for one in (found.values() if isinstance(found, dict) else [found])
    if isinstance(one, Statement)
}
TARGETS: list[tuple[Engine, Placeholder, str]] = [
    ("sqlite", "qmark", r"\?"),
    ("sqlite", "format", "%s"),
    ("postgresql", "format", "%s"),
    ("mysql", "format", "%s"),
]


@pytest.mark.parametrize("engine,placeholder,mark", TARGETS)
@pytest.mark.parametrize("name", STATEMENTS)
def test_a_text_has_a_value_for_each_placeholder(
    name: str, engine: Engine, placeholder: Placeholder, mark: str
) -> None:
    made = text(STATEMENTS[name], engine, placeholder)

    assert len(re.findall(mark, made.sql)) == len(made.order)
    assert "POSTCOMPILE" not in made.sql
    assert "%(" not in made.sql


def test_the_statements_are_found() -> None:
    assert {"insert_intent", "claim_block", "claim_pass", "record_retry", "lock_row"} <= set(STATEMENTS)


def test_a_missing_value_is_noticed_before_anything_is_sent() -> None:
    made = text(outbox_store.status_by_id, "sqlite", "qmark")
    with pytest.raises(KeyError):
        made.values({})


def test_rows_are_skipped_where_the_engine_can() -> None:
    claim = STATEMENTS["claim_block"]

    assert "FOR UPDATE OF candidate SKIP LOCKED" in text(claim, "postgresql", "format").sql
    assert "FOR UPDATE" not in text(claim, "sqlite", "qmark").sql


def test_a_state_in_a_text_is_a_plain_word() -> None:
    assert str(constant(OutboxState.PENDING)) == "'pending'"
    with pytest.raises(Internal):
        constant(type("Bad", (), {"value": "a' OR 'b"})())


@pytest.mark.parametrize("engine", ["sqlite", "postgresql", "mysql"])
def test_the_script_creates_every_table_and_index(engine: Engine) -> None:
    script = schema.ddl(engine)
    for table in metadata.sorted_tables:
        assert f"CREATE TABLE IF NOT EXISTS {table.name} " in script
        for index in table.indexes:
            known = "" if engine == "mysql" else "IF NOT EXISTS "
            assert f"CREATE INDEX {known}{index.name} " in script
