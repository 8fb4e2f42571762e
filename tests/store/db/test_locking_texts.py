"""What the texts of the MySQL wire say where MariaDB and MySQL differ, without either of them."""

import re

from tests.store.db.snapshot_sql import import_everything

from doonce.db.statement import Statement
from doonce.runtime.relay_claim import lock_found
from doonce.runtime.statements import text

LOCKS = re.compile(r" FOR UPDATE| LOCK IN SHARE MODE")
NAMED = re.compile(
    r" (FOR UPDATE /\*!80001 OF `?\w+`?|/\*!80001 FOR SHARE OF `?\w+`? \*/ /\*M! LOCK IN SHARE MODE) \*/"
)


def test_a_lock_beside_a_batch_names_the_tables_for_mysql_which_locks_no_batch() -> None:
    import_everything()
    texts = {name: one.mysql.text for name, one in Statement.registry.items()}
    texts["relay"] = text(lock_found, "mysql", "format").sql
    locking = {name: one for name, one in texts.items() if "JSON_TABLE" in one and LOCKS.search(one)}
    assert len(locking) > 10
    assert [name for name, one in locking.items() if not NAMED.search(one)] == []


def test_a_lock_without_a_batch_is_the_same_for_both() -> None:
    import_everything()
    alone = [one.mysql.text for one in Statement.registry.values() if "JSON_TABLE" not in one.mysql.text]
    assert any(LOCKS.search(one) for one in alone)
    assert not [one for one in alone if "/*!" in one]


def test_texts_are_known_by_the_statements_own_columns() -> None:
    import_everything()
    assert {"id", "state", "lease_token"} <= Statement.registry["work.lock_items"].mysql_plain.texts
    assert "lease_until" not in Statement.registry["work.lock_items"].mysql_plain.texts
    assert "lane" in Statement.registry["lanes.next_in_target"].mysql_plain.texts
