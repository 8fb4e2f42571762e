"""How log lines look: set once, at the start of a process, on standard error."""

from __future__ import annotations

import logging
import sys
from typing import TextIO, cast

import structlog

from doonce.app.settings import LogFormat


class _StandardError:
    """Whatever standard error is when a line is written: it may have been replaced since the start."""

    def write(self, text: str) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()


def configure(form: LogFormat, *, level: int = logging.INFO) -> None:
    """Send log lines to standard error, for people or as one JSON document each. No line holds a payload or secret."""
    renderer: structlog.typing.Processor = (
        structlog.processors.JSONRenderer()
        if form is LogFormat.JSON
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    if form is LogFormat.JSON:
        shared.append(structlog.processors.format_exc_info)
    structlog.configure(
        processors=[*shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(cast("TextIO", _StandardError())),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(
        level=logging.WARNING, stream=sys.stderr, format="%(levelname)s %(name)s: %(message)s"
    )
