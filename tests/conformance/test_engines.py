"""Every case passes on every engine, and the run leaves nothing behind."""

import shutil
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
import sqlalchemy as sa
from tests.conformance.running import SOURCE, conformance

from doonce.conformance.cases import CASES

pytestmark = [pytest.mark.process, pytest.mark.timeout(400)]


def left_behind(url: str) -> list[str]:
    """What is in the database, or in the folder of its file."""
    if url.startswith("sqlite"):
        return sorted(path.name for path in Path(urlsplit(url).path).parent.iterdir())
    if url.startswith("mysql"):
        engine = sa.create_engine(sa.make_url(url).set(drivername="mysql+pymysql"))
        made = [
            name for name in sa.inspect(engine).get_schema_names() if name.startswith("doonce_conformance_")
        ]
        engine.dispose()
        return made
    with psycopg.connect(url) as connection:
        rows = connection.execute(
            "SELECT nspname FROM pg_namespace WHERE nspname !~ '^(pg_|information_schema)'"
        )
        return sorted(row[0] for row in rows)


def test_every_case_passes(database_url: str) -> None:
    before = left_behind(database_url)
    ran = conformance(database_url, "--json")
    assert ran.failed == {}, ran.err
    report = ran.report
    assert ran.status == 0
    assert report["engine"] == database_url.partition(":")[0]
    assert [case["id"] for case in report["cases"]] == [case.id for case in CASES]
    assert (report["passed"], report["failed"]) == (len(CASES), 0)
    assert all(case["seconds"] >= 0 and case["title"] for case in report["cases"])
    assert left_behind(database_url) == before


def test_people_get_a_table_that_hides_nothing(tmp_path: Path) -> None:
    ran = conformance(f"sqlite:///{tmp_path / 'x.db'}", "--case", "other-payload", "--case", "spare-hints")
    assert ran.status == 0, ran.err
    assert "2 passed, 0 failed" in ran.out
    assert "not built yet" in ran.out
    assert "replica quota" in ran.out
    assert ran.out.index("spare-hints") < ran.out.index("other-payload")


def test_every_case_passes_without_json_table_and_without_skipping_what_is_locked(
    tmp_path: Path, fresh_mariadb: str
) -> None:
    """As TiDB is spoken to, which could never be run here; the copy could not say JSON_TABLE to any server."""
    source = tmp_path / "src"
    shutil.copytree(SOURCE, source)
    replace(source / "doonce/db/tidb.py", "    return is_tidb(version)\n", "    return True\n")
    replace(source / "doonce/db/mysql_sql.py", '("JSON_TABLE("', '("NO_SUCH_TABLE("')
    ran = conformance(fresh_mariadb, "--json", source=source)
    assert ran.failed == {}, ran.err
    assert (ran.status, ran.report["passed"]) == (0, len(CASES))


def replace(module: Path, right: str, wrong: str) -> None:
    """Change one place of a copy."""
    text = module.read_text()
    assert text.count(right) == 1, "it is not where it was"
    module.write_text(text.replace(right, wrong))
