"""An application that takes events, as a process of its own; its table of effects is the witness of the tests.

    python -m tests.e2e.event_application FOLDER PORT CREDENTIAL DEATHS

It kills itself after a commit and before the answer, in the first so many transactions that its folder has seen.
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa
import uvicorn

from doonce.base.secrets import Secret
from doonce.runtime import schema
from doonce.runtime.asgi import events_app
from doonce.runtime.events import Event, EventHandlers
from doonce.runtime.inbox import EventHandler

EFFECTS = (
    "CREATE TABLE IF NOT EXISTS effect (seen INTEGER PRIMARY KEY, event TEXT, object TEXT, number INTEGER)"
)


def main(folder: Path, port: int, credential: str, deaths: int) -> None:
    engine = sa.create_engine(f"sqlite:///{folder / 'application.db'}", connect_args={"timeout": 30})
    with engine.begin() as connection:
        connection.exec_driver_sql(EFFECTS)
        schema.create(connection)
    handlers: EventHandlers[EventHandler] = EventHandlers()

    @handlers.on("shop.made")
    def made(connection: Any, event: Event) -> None:
        content: Any = event.content
        connection.execute(
            sa.text("INSERT INTO effect (event, object, number) VALUES (:event, :object, :number)"),
            {"event": event.id, "object": str(content["object"]), "number": content["number"]},
        )

    @contextmanager
    def begin() -> Iterator[sa.Connection]:
        with engine.begin() as connection:
            yield connection
        if len(list(folder.glob("death-*"))) < deaths:
            (folder / f"death-{os.getpid()}").touch()
            os.kill(os.getpid(), signal.SIGKILL)

    app = events_app(begin, handlers, Secret(credential))
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="warning", lifespan="off")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4]))
