"""Readiness in an outage: the process itself says that the database is gone, and that it is back."""

import contextlib
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import pytest
from tests.e2e.conftest import LOCAL
from tests.process.effects.proxy import proxied

from doonce.app.config import settings_from
from doonce.app.opening import open_engine
from doonce.app.proof import migrate_database, prove
from doonce.app.web.readiness import Readiness

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize("server", ["postgresql", "mariadb"])
async def test_readiness_follows_the_database_away_and_back(
    request: pytest.FixtureRequest, tmp_path: Path, server: str
) -> None:
    fixture = {"postgresql": "fresh_postgres", "mariadb": "fresh_mariadb"}[server]
    parts = urlsplit(request.getfixturevalue(fixture))
    with proxied(parts.hostname or "127.0.0.1", parts.port or 0) as proxy:
        user = parts.netloc.rpartition("@")[0]
        url = urlunsplit(parts._replace(netloc=f"{user}@127.0.0.1:{proxy.port}"))
        settings = settings_from({"database": url, "key_file": str(tmp_path / "keys.toml"), "egress": LOCAL})
        await migrate_database(settings)
        async with contextlib.AsyncExitStack() as stack:
            engine = open_engine(settings)
            stack.push_async_callback(engine.stop)
            watch, readiness = await prove(engine, settings), Readiness()
            readiness.clear("start")
            await watch.look(readiness)
            assert readiness.ready, readiness.document()
            proxy.cut()
            await watch.look(readiness)
            causes = readiness.document().causes
            assert set(causes) == {"database"}
            assert "cannot be reached" in causes["database"]
            proxy.restore()
            await watch.look(readiness)
            assert readiness.ready, readiness.document()
