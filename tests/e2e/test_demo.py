"""The demo is a promise of its own: it runs unattended, checks itself, and leaves nothing behind."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.e2e.conftest import ROOT

STORIES = (
    "1  Once", "2  Nobody knows", "3  Too late", "4  A server that nobody here wrote",
    "5  Every delivery is one event",
)  # fmt: skip

pytestmark = [pytest.mark.e2e, pytest.mark.process]


@pytest.mark.timeout(400)
def test_the_demo_is_ok(tmp_path: Path) -> None:
    before = set((ROOT / "var").glob("demo-*"))
    done = subprocess.run(
        [sys.executable, "-m", "doonce.app.cli", "demo"],
        check=False,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=390,
    )
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1] == "demo: ok"
    for story in STORIES:
        assert story in done.stdout
    assert set((ROOT / "var").glob("demo-*")) == before
