"""The verifier: every kind of difference is named, none is repaired, an intact schema has none."""

from functools import partial

import pytest
import sqlalchemy as sa
from tests.store.db.owners import import_tables

from doonce.base.errors import Unavailable
from doonce.db import maintenance, migrate
from doonce.db.verify import require, verify
from doonce.ownership import store as ownership

import_tables()
INSTALL = partial(ownership.install, "test", "sha256:0", "op_1")

REBUILT_ON_SQLITE = """
CREATE TABLE work_ownership_new (
    family TEXT NOT NULL, deployment TEXT NOT NULL, release_digest TEXT NOT NULL, epoch {epoch},
    operation_id TEXT {null}, state TEXT NOT NULL {default}, changed_at BIGINT NOT NULL {more},
    CONSTRAINT work_ownership_pk PRIMARY KEY ({key}))
"""


def rebuilt(**changes: str) -> list[str]:
    parts = {
        "epoch": "BIGINT NOT NULL",
        "null": "NOT NULL",
        "default": "",
        "more": "",
        "key": "family",
    } | changes
    return [
        REBUILT_ON_SQLITE.format(**parts),
        "DROP TABLE work_ownership",
        "ALTER TABLE work_ownership_new RENAME TO work_ownership",
    ]


DAMAGES = {
    "table": (["DROP TABLE work_ready"], ["DROP TABLE work_ready"], "table work_ready should be there"),
    "column": (
        ["ALTER TABLE work_item DROP COLUMN summary"],
        ["ALTER TABLE work_item DROP COLUMN summary"],
        "column work_item.summary should be TEXT",
    ),
    "more": (
        rebuilt(more=", surplus TEXT"),
        ["ALTER TABLE work_ownership ADD COLUMN surplus TEXT"],
        "column work_ownership.surplus should be absent",
    ),
    "type": (
        rebuilt(epoch="INTEGER NOT NULL"),
        ["ALTER TABLE work_ownership ALTER COLUMN epoch TYPE integer"],
        "column work_ownership.epoch should be BIGINT NOT NULL, but is INTEGER NOT NULL",
    ),
    "null": (
        rebuilt(null=""),
        ["ALTER TABLE work_ownership ALTER COLUMN operation_id DROP NOT NULL"],
        "column work_ownership.operation_id",
    ),
    "default": (
        rebuilt(default="DEFAULT 'active'"),
        ["ALTER TABLE work_ownership ALTER COLUMN state SET DEFAULT 'active'"],
        "is TEXT",
    ),
    "primary key": (
        rebuilt(key="family, epoch"),
        [
            "ALTER TABLE work_ownership DROP CONSTRAINT work_ownership_pk",
            "ALTER TABLE work_ownership ADD CONSTRAINT work_ownership_pk PRIMARY KEY (family, epoch)",
        ],
        "the primary key of work_ownership should be (family), but is (family, epoch)",
    ),
    "index": (
        ["DROP INDEX work_item_subject_id"],
        ["DROP INDEX work_item_subject_id"],
        "index work_item_subject_id on work_item should be (subject_id), but is missing",
    ),
    "order of an index": (
        ["DROP INDEX view_publication_digest",
         "CREATE INDEX view_publication_digest ON view_publication (digest, org, installation, capability)"],
        ["DROP INDEX view_publication_digest",
         "CREATE INDEX view_publication_digest ON view_publication (digest, org, installation, capability)"],
        "index view_publication_digest on view_publication should be (org, installation, capability, digest)",
    ),
    "unique index instead of index": (
        ["DROP INDEX work_item_subject_id", "CREATE UNIQUE INDEX u ON work_item (subject_id)"],
        ["DROP INDEX work_item_subject_id", "CREATE UNIQUE INDEX u ON work_item (subject_id)"],
        "unique key u on work_item should be absent",
    ),
    "partial index": (
        ["DROP INDEX work_item_subject_id",
         "CREATE INDEX work_item_subject_id ON work_item (subject_id) WHERE subject_kind = 'x'"],
        ["DROP INDEX work_item_subject_id",
         "CREATE INDEX work_item_subject_id ON work_item (subject_id) WHERE subject_kind = 'x'"],
        "index work_item_subject_id on work_item should be absent, but is (subject_id) where",
    ),
    "clock row": (["DELETE FROM doonce_clock"], ["DELETE FROM doonce_clock"], "one row, but is 0 rows"),
}  # fmt: skip

ON_MARIADB = {
    "table": (["DROP TABLE work_ready"], "table work_ready should be there"),
    "column": (
        ["ALTER TABLE work_item DROP COLUMN summary"],
        "column work_item.summary should be MEDIUMTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin, but is missing",
    ),
    "more": (["ALTER TABLE work_ownership ADD COLUMN surplus TEXT"], "column work_ownership.surplus should be absent"),
    "type": (
        ["ALTER TABLE work_ownership MODIFY COLUMN epoch integer NOT NULL"],
        "column work_ownership.epoch should be BIGINT NOT NULL, but is INT NOT NULL",
    ),
    "null": (
        ["ALTER TABLE work_ownership MODIFY COLUMN operation_id varbinary(255)"],
        "column work_ownership.operation_id should be VARBINARY(255) NOT NULL, but is VARBINARY(255)",
    ),
    "default": (
        ["ALTER TABLE work_ownership ALTER COLUMN state SET DEFAULT 'active'"],
        "but is VARBINARY(255) NOT NULL a default",
    ),
    "auto increment": (
        ["ALTER TABLE doonce_clock MODIFY COLUMN id bigint NOT NULL AUTO_INCREMENT"],
        "column doonce_clock.id should be BIGINT NOT NULL, but is BIGINT NOT NULL a default",
    ),
    "a padding collation": (
        ["ALTER TABLE work_ownership MODIFY COLUMN state varchar(255) NOT NULL"],
        "column work_ownership.state should be VARBINARY(255) NOT NULL, but is VARCHAR(255)",
    ),
    "primary key": (
        ["ALTER TABLE work_ownership DROP PRIMARY KEY, ADD PRIMARY KEY (family, epoch)"],
        "the primary key of work_ownership should be (family), but is (family, epoch)",
    ),
    "index": (
        ["DROP INDEX work_item_subject_id ON work_item"],
        "index work_item_subject_id on work_item should be (subject_id), but is missing",
    ),
    "order of an index": (
        ["ALTER TABLE view_publication DROP INDEX view_publication_digest",
         "CREATE INDEX view_publication_digest ON view_publication (digest, org, installation, capability)"],
        "index view_publication_digest on view_publication should be (org, installation, capability, digest)",
    ),
    "unique index instead of index": (
        ["ALTER TABLE work_item DROP INDEX work_item_subject_id, ADD UNIQUE INDEX u (subject_id)"],
        "unique key u on work_item should be absent",
    ),
    "partial index": (
        ["ALTER TABLE work_item DROP INDEX work_item_subject_id, ADD INDEX work_item_subject_id (subject_id(9))"],
        "index work_item_subject_id on work_item should be absent, but is (subject_id) where",
    ),
    "unique index of a prefix": (
        ["ALTER TABLE work_item DROP INDEX work_item_predecessor",
         "CREATE UNIQUE INDEX work_item_predecessor ON work_item (predecessor(9))"],
        "unique key work_item_predecessor on work_item should be absent, but is (predecessor) where",
    ),
    "a column that the server fills": (
        ["ALTER TABLE work_claimer DROP COLUMN claimed_at",
         "ALTER TABLE work_claimer ADD COLUMN claimed_at bigint AS (7) VIRTUAL"],
        "column work_claimer.claimed_at should be BIGINT NOT NULL, but is BIGINT AS 7",
    ),
    "storage engine": (
        ["ALTER TABLE work_claimer ENGINE = MyISAM"],
        "the storage engine of work_claimer should be InnoDB, but is MyISAM",
    ),
    "clock row": (["DELETE FROM doonce_clock"], "one row, but is 0 rows"),
}  # fmt: skip


@pytest.fixture
async def migrated(database_url: str) -> str:
    await migrate.migrate(database_url, install=INSTALL)
    return database_url


async def damage(url: str, texts: list[str]) -> None:
    def work(connection: sa.Connection) -> None:
        for text in texts:
            connection.exec_driver_sql(text)

    await maintenance.run(url, work, write=True)


@pytest.mark.parametrize("kind", DAMAGES)
async def test_rule_12_each_kind_of_difference_is_named_and_left(migrated: str, kind: str) -> None:
    if migrated.startswith("mysql"):
        texts, said = ON_MARIADB[kind]
    else:
        on_sqlite, on_postgresql, said = DAMAGES[kind]
        texts = on_sqlite if migrated.startswith("sqlite") else on_postgresql
    await named_and_left(migrated, texts, said)


@pytest.mark.parametrize("kind", sorted(ON_MARIADB.keys() - DAMAGES))
async def test_rule_12_what_only_the_mysql_wire_can_get_wrong_is_named_and_left(
    fresh_mariadb: str, kind: str
) -> None:
    await migrate.migrate(fresh_mariadb, install=INSTALL)
    await named_and_left(fresh_mariadb, *ON_MARIADB[kind])


async def named_and_left(migrated: str, texts: list[str], said: str) -> None:
    await damage(migrated, texts)
    found = await verify(migrated)
    assert any(said in str(difference) for difference in found.differences), found.differences
    assert found.mend
    with pytest.raises(Unavailable) as refused:
        await require(migrated)
    assert refused.value.hint == found.mend
    assert await verify(migrated) == found


@pytest.mark.postgresql
async def test_rule_12_what_only_postgresql_can_get_wrong_is_named(fresh_postgres: str) -> None:
    await migrate.migrate(fresh_postgres, install=INSTALL)
    await damage(
        fresh_postgres,
        [
            'ALTER TABLE work_item ALTER COLUMN subject_kind TYPE text COLLATE "default"',
            "DROP INDEX work_item_predecessor",
            "ALTER TABLE work_ownership ALTER COLUMN epoch ADD GENERATED ALWAYS AS IDENTITY",
            "ALTER TABLE work_item ADD FOREIGN KEY (family) REFERENCES work_ownership (family)",
        ],
    )
    said = [str(difference) for difference in (await verify(fresh_postgres)).differences]
    assert len(said) == 4
    assert any("a foreign key of work_item should be absent" in text for text in said)
    assert any("work_item.subject_kind" in text and "COLLATE" in text for text in said)
    assert any("unique key work_item_predecessor" in text for text in said)
    assert any("work_ownership.epoch" in text and "a default" in text for text in said)


async def test_other_tables_beside_ours_are_left_alone(migrated: str) -> None:
    await damage(migrated, ["CREATE TABLE invoice (id INTEGER PRIMARY KEY)"])
    assert (await verify(migrated)).differences == ()
    assert (await migrate.migrate(migrated, install=INSTALL)).applied == ()


async def test_many_differences_are_counted_in_one_error(database_url: str) -> None:
    await damage(database_url, ["CREATE TABLE invoice (id INTEGER PRIMARY KEY)"])
    with pytest.raises(Unavailable, match=r"and \d+ more"):
        await require(database_url)
