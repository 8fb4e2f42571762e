"""The list is whole: each line has cases or says what is missing, and every case belongs to one (PROTOCOL Q1)."""

from collections import Counter
from pathlib import Path

import pytest

from doonce.base.errors import Invalid
from doonce.conformance.cases import CASES
from doonce.conformance.lines import LINES
from doonce.conformance.model import Broken, CaseResult, Status, expect, expect_equal, report_of
from doonce.conformance.suite import chosen

GUIDE = Path(__file__).parents[3] / "docs" / "conformance.md"
KERNEL_LINES = 26
"""What authority §13 lists for the kernel."""


def test_q1_every_line_has_cases_or_a_missing_mechanism() -> None:
    assert len(LINES) == KERNEL_LINES
    assert [line.text for line in LINES if not line.cases and not line.missing] == []


def test_q1_every_case_proves_exactly_one_line_and_is_there() -> None:
    listed = Counter(case for line in LINES for case in line.cases)
    assert listed == Counter(case.id for case in CASES)
    assert set(listed.values()) == {1}


def test_a_case_is_chosen_by_its_id_and_an_unknown_one_is_refused() -> None:
    assert [case.id for case in chosen(["run-after", "one-winner"])] == ["one-winner", "run-after"]
    assert chosen([]) == CASES
    with pytest.raises(Invalid, match="no case 'one-loser'") as refused:
        chosen(["one-winner", "one-loser"])
    assert "one-winner" in refused.value.hint


def test_a_report_counts_and_names_what_is_not_built() -> None:
    results = [
        CaseResult(id=name, title=name, status=status, seconds=1.0)
        for name, status in (("a", Status.PASSED), ("b", Status.FAILED), ("c", Status.PASSED))
    ]
    report = report_of("sqlite", results, LINES)
    assert (report.passed, report.failed) == (2, 1)
    assert {missing.line for missing in report.not_built} == {line.text for line in LINES if line.missing}


def test_what_does_not_hold_is_said() -> None:
    expect(holds=True, seen="nothing")
    expect_equal(1, 1, "a number")
    with pytest.raises(Broken, match=r"^a number: 1 where 2 must be$"):
        expect_equal(1, 2, "a number")
    with pytest.raises(Broken) as broken:
        expect_equal("x" * 1000, "", "a text")
    assert len(str(broken.value)) < 400


def test_the_guide_has_every_line_with_its_cases() -> None:
    rows = [
        tuple(cell.strip() for cell in line.strip("|\n").split("|"))
        for line in GUIDE.read_text().splitlines()
        if line.startswith("| ")
    ]
    wanted = {(line.text, ", ".join(f"`{case}`" for case in line.cases), line.missing) for line in LINES}
    assert wanted - set(rows) == set()
