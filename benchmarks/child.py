"""`python -m benchmarks.child MODULE prepare|run`: one step of a measurement. Setting on stdin, values on stdout."""

from __future__ import annotations

import importlib
import os
import sys

import msgspec

from benchmarks.case import Setting


def main() -> None:
    """Carry out the step, print its values as one JSON line, and leave without waiting for anybody's threads."""
    module, step = sys.argv[1:]
    setting = msgspec.json.decode(sys.stdin.buffer.read(), type=Setting)
    action = getattr(importlib.import_module(f"benchmarks.{module}"), step, None)
    values = action(setting) if action is not None else {}
    sys.stdout.write(msgspec.json.encode(values or {}).decode() + "\n")
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
