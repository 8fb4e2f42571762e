"""Private servers of one test, on loopback, durable as in production: started, killed and removed by it alone."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from doonce.conformance.skew import find_library

START_S = 60.0
STOP_S = 30.0
COMMAND_S = 60.0


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port: int = held.getsockname()[1]
        return port


def program(name: str, folders: Sequence[str]) -> str:
    """A program of a server, wherever the distribution has put it; of several versions the newest."""
    found = [path for folder in folders for path in sorted(Path("/").glob(f"{folder}/{name}"))]
    there = str(found[-1]) if found else shutil.which(name)
    assert there, f"{name} is not on this machine: scripts/postgres.sh and scripts/mariadb.sh install it"
    return there


class Server:
    """One server process and the folder of its data, which belongs to the server's own user."""

    def __init__(self, folder: Path, user: str) -> None:
        self.folder = folder
        self.port = free_port()
        self.environment: dict[str, str] = {}
        self._user = user if os.geteuid() == 0 else None  # these servers refuse to be root
        self._process: subprocess.Popen[bytes] | None = None
        self.folder.mkdir(mode=0o755)
        self.own(self.folder)

    def tell_time(self, ahead: str) -> None:
        """Let the server's clock be ahead of the host's by this (`+1h`, `-10m`), now or from its start on.

        It must be told before the start, if ever: libfaketime is loaded then, and reads the file each time.
        """
        file = self.folder / "clock"
        draft = self.folder / "clock.new"
        draft.write_text(f"{ahead}\n")
        draft.chmod(0o644)
        draft.replace(file)
        self.environment = {
            "LD_PRELOAD": str(find_library()),
            "FAKETIME_TIMESTAMP_FILE": str(file),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "NO_FAKE_STAT": "1",  # a file system keeps its times, whatever the clock says later
        }

    def own(self, path: Path) -> None:
        """Give a path to the server's user."""
        if self._user is not None:
            entry = pwd.getpwnam(self._user)
            os.chown(path, entry.pw_uid, entry.pw_gid)

    def run(self, *command: str, environment: Mapping[str, str] | None = None, feed: bytes = b"") -> bytes:
        """Run a program as the server's user; what it printed."""
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=os.environ | dict(environment or {}),
            input=feed,
            capture_output=True,
            timeout=COMMAND_S,
            check=False,
            **self._as_user(),  # type: ignore[call-overload]
        )
        assert done.returncode == 0, done.stderr.decode(errors="replace")
        out: bytes = done.stdout
        return out

    def launch(self, *command: str) -> None:
        """Start the server, in a group of its own; nothing is waited for."""
        assert self._process is None, "it runs already"
        with (self.folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=self.folder,
                env=os.environ | self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **self._as_user(),  # type: ignore[call-overload]
            )

    def wait_accepting(self) -> None:
        """Wait until it takes connections, bounded."""
        deadline_s = time.monotonic() + START_S
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1.0):
                return
            assert self._process is not None
            assert self._process.poll() is None, f"the server did not start: {self.log()}"
            assert time.monotonic() < deadline_s, f"the server does not come up: {self.log()}"
            time.sleep(0.05)

    def log(self) -> str:
        """The end of what it has said."""
        return (self.folder / "server.log").read_text(errors="replace")[-3000:]

    def kill(self) -> None:
        """End it at once, with all its processes, as a power cut of its machine would."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(STOP_S)
            for name in (
                "faketime_shm",
                "sem.faketime_sem",
            ):  # what libfaketime cannot take along when it is killed
                Path(f"/dev/shm/{name}_{self._process.pid}").unlink(missing_ok=True)
            self._process = None

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """End it in an orderly way."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(STOP_S)
            self._process = None

    def _as_user(self) -> dict[str, object]:
        if self._user is None:
            return {}
        entry = pwd.getpwnam(self._user)
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": []}
