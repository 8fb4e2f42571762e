"""Worker processes whose clocks and time zones disagree: each believes in another time of day (PROTOCOL C1).

libfaketime is preloaded into the process that forks them, and each child then tells the library what to say. Only the
time of day is another one: clocks that count from the boot stay true, as they do on a machine whose date is wrong.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from doonce.base.errors import Unavailable

FOLDERS: Final = ("/usr/lib", "/usr/lib64", "/usr/local/lib")
LIBRARY: Final = "libfaketime.so.1"
LOADED: Final = {
    "FAKETIME": "+0",
    "FAKETIME_NO_CACHE": "1",  # else a child would go on with what its parent was told
    "FAKETIME_DONT_FAKE_MONOTONIC": "1",
}
NEAR_SECONDS: Final = 1_800.0
"""How far a clock that runs at another rate may have come by itself: a run lasts minutes."""


class Skew(msgspec.Struct, frozen=True, kw_only=True):
    """What one process believes: seconds ahead of the true time (behind, if negative), how many seconds pass for it in
    one, and the time zone that it is in.
    """

    ahead_seconds: int
    rate: float = 1.0
    zone: str


SKEWS: Final = (
    Skew(ahead_seconds=3 * 3_600, zone="Asia/Kathmandu"),
    Skew(ahead_seconds=-2 * 86_400, zone="America/St_Johns"),
    Skew(ahead_seconds=40 * 86_400, rate=1.5, zone="Pacific/Kiritimati"),
    Skew(ahead_seconds=-5 * 3_600, rate=0.75, zone="Pacific/Pago_Pago"),
)
"""Worker processes take turns over these: hours and days ahead and behind, faster and slower, east and west."""


def find_library() -> Path:
    """Where libfaketime is; raises `Unavailable` with what to install."""
    patterns = (f"faketime/{LIBRARY}", f"*/faketime/{LIBRARY}")
    found = [
        path for folder in FOLDERS for pattern in patterns for path in sorted(Path(folder).glob(pattern))
    ]
    if not found or sys.platform != "linux":
        raise Unavailable(
            "processes cannot be given other clocks: libfaketime is not on this machine",
            hint="install Debian's package libfaketime, or your system's like (Linux only)",
        )
    return found[0]


@contextmanager
def preloaded(library: Path) -> Iterator[None]:
    """Whatever is started inside has the library, and still tells the true time."""
    before = {name: os.environ.get(name) for name in ("LD_PRELOAD", *LOADED)}
    others = before["LD_PRELOAD"]
    os.environ.update(LOADED, LD_PRELOAD=f"{library}:{others}" if others else str(library))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def put_on(skew: Skew) -> None:
    """Believe in this from now on; raises `Unavailable` where that has no effect, so that nothing passes by chance."""
    true_seconds = time.time()
    os.environ["FAKETIME"] = f"{skew.ahead_seconds:+d} x{skew.rate}"
    os.environ["TZ"] = skew.zone
    time.tzset()
    if abs(time.time() - true_seconds - skew.ahead_seconds) > NEAR_SECONDS:
        raise Unavailable(f"{LIBRARY} is not at work in this process", hint="is something else preloaded?")
    if time.localtime().tm_gmtoff == 0:
        raise Unavailable(
            f"the time zone {skew.zone} is not on this machine", hint="install the package tzdata"
        )
