"""`python -m examples.crm --help`"""

import asyncio
import json
import sys
from pathlib import Path

from cyclopts import App
from examples.crm import leads
from examples.crm.serve import serve as serve_until_stopped
from examples.crm.settings import load

from doonce.base.errors import DoonceError

app = App(name="crm", help="A small application whose changes reach another system exactly once.")


@app.command
def serve(config: Path) -> None:
    """Take completions and relay changes, until stopped."""
    asyncio.run(serve_until_stopped(load(config)))


@app.command
def add(config: Path, lead_id: int, name: str, *, title: str = "") -> None:
    """Add a lead."""
    leads.add_lead(leads.open_database(load(config).database), lead_id, name, title)


@app.command
def change(config: Path, lead_id: int, title: str) -> None:
    """Change a lead's title; prints the id of its outbox row."""
    settings = load(config)
    engine = leads.open_database(settings.database)
    outbox_id = leads.change_title(engine, lead_id, title, scope=settings.scope, operation=settings.operation)
    print(json.dumps({"outbox_id": outbox_id}))


@app.command
def withdraw(config: Path, outbox_id: str) -> None:
    """Ask that a change is not handed over; prints what was found."""
    answer = leads.withdraw(leads.open_database(load(config).database), outbox_id)
    print(json.dumps({"outbox_id": outbox_id, "withdrawal": answer.value}))


@app.command
def show(config: Path) -> None:
    """Print every lead with its changes, one JSON document a line."""
    for lead in leads.show(leads.open_database(load(config).database)):
        print(json.dumps(lead))


def main() -> None:
    """Run a command; an error of ours is one line with what to do next, and status 1."""
    try:
        app()
    except DoonceError as failed:
        hint = f" ({failed.hint})" if failed.hint else ""
        print(f"crm: {failed.message}{hint}", file=sys.stderr)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
