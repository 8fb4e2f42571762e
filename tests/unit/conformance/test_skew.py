"""Other clocks are had or refused: a process that could not be given one never passes for skewed."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from doonce.base.errors import Unavailable
from doonce.conformance import skew


@pytest.fixture
def as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a process believes is put back afterwards."""
    for name in ("TZ", "LD_PRELOAD", *skew.LOADED):
        monkeypatch.delenv(name, raising=False)
    yield
    monkeypatch.undo()
    time.tzset()


def test_a_machine_without_the_library_is_told_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skew, "FOLDERS", (str(tmp_path),))
    with pytest.raises(Unavailable, match="libfaketime is not on this machine") as refused:
        skew.find_library()
    assert "package libfaketime" in refused.value.hint
    library = tmp_path / "multi-arch" / "faketime" / skew.LIBRARY
    library.parent.mkdir(parents=True)
    library.touch()
    assert skew.find_library() == library


@pytest.mark.usefixtures("as_before")
def test_a_process_without_the_library_does_not_pass_for_one_with_another_clock() -> None:
    with pytest.raises(Unavailable, match="is not at work"):
        skew.put_on(skew.SKEWS[0])


@pytest.mark.usefixtures("as_before")
def test_only_what_is_started_inside_has_the_library() -> None:
    with skew.preloaded(Path("/x.so")):
        assert os.environ["LD_PRELOAD"] == "/x.so"
        assert os.environ["FAKETIME"] == "+0"
    assert not {"LD_PRELOAD", *skew.LOADED} & set(os.environ)
    os.environ["LD_PRELOAD"] = "/other.so"
    with skew.preloaded(Path("/x.so")):
        assert os.environ["LD_PRELOAD"] == "/x.so:/other.so"
    assert os.environ["LD_PRELOAD"] == "/other.so"


def test_the_clocks_are_far_apart_and_on_both_sides_of_the_truth() -> None:
    ahead = sorted(one.ahead_seconds for one in skew.SKEWS)
    assert min(abs(seconds) for seconds in ahead) > skew.NEAR_SECONDS
    assert ahead[0] < 0 < ahead[-1]
    assert any(one.rate != 1.0 for one in skew.SKEWS)
    assert len({one.zone for one in skew.SKEWS}) == len(skew.SKEWS)
