"""Starting a simulator as a process of its own, and talking to its control side."""

import contextlib
import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_ROOT: Final = Path(__file__).resolve().parents[1]
_CONTROL_TIMEOUT_S: Final = 30.0
_STOP_TIMEOUT_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Simulator:
    """A running simulator: `url` is the provider's side, `control_url` the tests'."""

    url: str
    control_url: str
    pid: int
    ledger_path: Path

    def control(self, method: str, name: str, document: object = None) -> Any:
        """One control request, under `/_sim/`."""
        body = None if document is None else json.dumps(document).encode()
        request = urllib.request.Request(f"{self.control_url}/_sim/{name}", body, method=method)  # noqa: S310 - ours
        with urllib.request.urlopen(request, timeout=_CONTROL_TIMEOUT_S) as reply:  # noqa: S310 - ours
            return json.load(reply)

    def reset(self) -> None:
        """Forget contacts, faults and what the ledger shows; accept connections again."""
        self.control("POST", "reset")

    def seed(self, *contacts: dict[str, Any], count: int = 0) -> list[str]:
        """Put contacts there, `count` of them made up; their ids."""
        ids: list[str] = self.control("POST", "seed", {"contacts": contacts, "count": count})["ids"]
        return ids

    def faults(self, *rules: dict[str, Any]) -> None:
        """Append rules to the script of faults."""
        self.control("POST", "faults", {"faults": rules})

    def ledger(self, since: int = 0) -> list[dict[str, Any]]:
        """Every request of which a byte arrived since the last reset."""
        entries: list[dict[str, Any]] = self.control("GET", f"ledger?since={since}")["entries"]
        return entries

    def stats(self) -> dict[str, int]:
        """How many there were."""
        counts: dict[str, int] = self.control("GET", "stats")
        return counts

    def contact(self, contact_id: str) -> dict[str, Any]:
        """One contact with all its properties, archived or not."""
        shown: dict[str, Any] = self.control("GET", f"contacts/{contact_id}")
        return shown


@contextlib.contextmanager
def running(module: str, ledger_path: Path, *options: str) -> Iterator[Simulator]:
    """`python -m module`, from its announcement until the end of the block."""
    command = [
        sys.executable,
        "-m",
        module,
        "--port",
        "0",
        "--ledger",
        str(ledger_path),
        "--announce",
        *options,
    ]
    with subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.PIPE) as process:  # noqa: S603 - our own module
        if process.stdout is None:
            raise RuntimeError("the simulator has no output to announce itself on")
        try:
            line = process.stdout.readline()
            if not line:
                raise RuntimeError(f"{module} ended before it announced itself")
            told = json.loads(line)
            yield Simulator(told["url"], told["control_url"], told["pid"], Path(told["ledger"]))
        finally:
            process.terminate()
            try:
                process.wait(_STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                process.kill()
