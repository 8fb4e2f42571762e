"""`doonce`: its commands, and what it says and returns when one fails (docs/cli.md)."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from cyclopts import App, CycloptsError, Group

from doonce.app.cli import gaps, installing, operating, running, webhooks
from doonce.app.cli.options import CONNECTING, OPERATING, PROVING, RUNNING
from doonce.base.errors import DoonceError, ErrorClass
from doonce.db.faults import CommitUnknown, DatabaseFault
from doonce.wire import encode, error_document

DONE: Final = 0
FAULT: Final = 1
USAGE: Final = 2
INTERRUPTED: Final = 130

EXIT_STATUS: Final[dict[ErrorClass, int]] = {
    ErrorClass.INVALID: USAGE,
    ErrorClass.MISSING_OR_DENIED: 3,
    ErrorClass.CONFLICT: 4,
    ErrorClass.QUARANTINED: 4,
    ErrorClass.STALE: 4,
    ErrorClass.UNAVAILABLE: 5,
    ErrorClass.EXHAUSTED: 5,
    ErrorClass.DEADLINE: 5,
    ErrorClass.UNAUTHENTICATED: 6,
    ErrorClass.FORBIDDEN: 6,
    ErrorClass.INTERNAL: FAULT,
}


def _version() -> str:
    try:
        return version("doonce")
    except PackageNotFoundError:
        return "not installed"


app = App(
    name="doonce",
    help="External calls that happen once, or say that nobody knows.",
    version=_version,
    help_epilogue="Every command takes `--config FILE` and `--database URL`; most take `--json`.",
    help_format="markdown",
)
COMMANDS: Final[tuple[tuple[Group, tuple[Callable[..., Any], ...]], ...]] = (
    (RUNNING, (running.up, running.serve, running.migrate, running.demo)),
    (
        CONNECTING,
        (
            installing.publish,
            installing.connect,
            installing.disconnect,
            installing.link,
            webhooks.webhook_secret,
            webhooks.verify_webhook,
        ),
    ),
    (
        OPERATING,
        (
            operating.status,
            operating.show,
            operating.cancel,
            operating.resolve,
            operating.replay,
            operating.release,
            operating.declare,
            operating.prune,
            operating.rewrap,
        ),
    ),
)
for group, commands in COMMANDS:
    for command in commands:
        app.command(command, group=group)
app.command(installing.credential_app)
app.command(gaps.gap_app)
app.command(  # by its path: it stands above this folder, and is loaded only when it is run
    "doonce.conformance.command:conformance",
    group=PROVING,
    help="Prove the protocol on a database of your own: real processes, real kills, a scratch place.",
)


def main(tokens: Sequence[str] | None = None) -> None:
    """Run one command and exit; a failure is one line that says what to do next."""
    given = list(sys.argv[1:] if tokens is None else tokens)
    raise SystemExit(run(given))


def run(tokens: list[str]) -> int:
    """Run one command; its exit status."""
    try:
        result = app(tokens, exit_on_error=False, print_error=False, result_action="return_value")
    except DoonceError as failed:
        return _failed(failed, tokens)
    except CommitUnknown:
        message = "whether the database has written it is not known"
        return _failed(DoonceError(message, hint="run exactly the same command again"), tokens, status=5)
    except DatabaseFault as fault:
        return _failed(DoonceError(f"the database failed: {fault}", hint="run it again"), tokens, status=5)
    except CycloptsError as failed:
        _say(f"doonce: {_plain(failed)}")
        _say("  next: doonce --help, or doonce COMMAND --help")
        return USAGE
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception:  # noqa: BLE001  # the edge of the process: shown whole, to be reported
        _say(traceback.format_exc())
        _say("doonce: a fault of doonce itself; what is above belongs into a report")
        return FAULT
    return result if isinstance(result, int) else DONE


def _failed(failed: DoonceError, tokens: list[str], status: int | None = None) -> int:
    if "--json" in tokens:
        _say(encode(error_document(failed)).decode())
    else:
        _say(f"doonce: {failed.message}")
        if failed.hint:
            _say(f"  next: {failed.hint}")
    return EXIT_STATUS[failed.error_class] if status is None else status


def _plain(failed: CycloptsError) -> str:
    text = " ".join(str(failed).split())
    return text[:1].lower() + text[1:] if text else type(failed).__name__


def _say(line: str) -> None:
    sys.stderr.write(f"{line}\n")
