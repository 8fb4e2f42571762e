"""`doonce conformance` as a user runs it: a process of its own, over any copy of the source."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parents[2] / "src"


@dataclass(frozen=True, slots=True)
class Ran:
    """How one run ended, and what it said."""

    status: int
    out: str
    err: str

    @property
    def report(self) -> dict[str, Any]:
        """The JSON document on its standard output."""
        assert self.out, self.err
        return dict(json.loads(self.out))

    @property
    def failed(self) -> dict[str, str]:
        """What each failed case saw."""
        return {case["id"]: case["seen"] for case in self.report["cases"] if case["status"] == "failed"}


def conformance(url: str, *options: str, source: Path = SOURCE) -> Ran:
    """Run the command against a database."""
    done = subprocess.run(
        [sys.executable, "-m", "doonce.app.cli", "conformance", url, *options],
        env=os.environ | {"PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)
