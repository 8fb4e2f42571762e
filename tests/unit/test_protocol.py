"""docs/protocol.md has every rule that the code cites, and names for each the tests that show it; they exist."""

import ast
import re
from collections import defaultdict
from collections.abc import Collection, Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "protocol.md"
TESTS = ROOT / "tests"
FAMILIES = "TGCWLDHFKISQ"
RULE = re.compile(rf"\b([{FAMILIES}])([1-9])\b")
RANGE = re.compile(rf"\b([{FAMILIES}])([1-9])\s?(?:–|-|to)\s?(?:\1)?([1-9])\b")
FAMILY = re.compile(rf"\bPROTOCOL ((?:[{FAMILIES}]\b(?:, )?)+)")
SECTION = re.compile(r"\bauthority(?:'s)?\s+(?:§|section )(\d+(?:\.\d+)?)((?:,\s+§\d+(?:\.\d+)?)*)")
DESIGN = re.compile(r"\bDESIGN rule (\d+)")
ROW = re.compile(r"^\| ([A-Z]\d) \| (.+) \| (.+) \|$")
UNBUILT_ROW = re.compile(r"^\| ([A-Z]\d) \| (.+) \|$")
DESIGN_ROW = re.compile(r"^\| (\d+) \| .+ \|$")
UNBUILT = "Not built yet"


def parts_of(page: str) -> dict[str, list[str]]:
    """The page's lines by the heading that they stand under."""
    parts: dict[str, list[str]] = defaultdict(list)
    heading = ""
    for line in page.splitlines():
        if line.startswith("#"):
            heading = line.lstrip("#").strip()
            parts[heading] = []
        parts[heading].append(line)
    return parts


PARTS = parts_of(PAGE.read_text())


def built() -> dict[str, str]:
    """Every rule that is built, and the cell that names its tests."""
    rules: dict[str, str] = {}
    for heading, lines in PARTS.items():
        if heading == UNBUILT:
            continue
        for match in filter(None, map(ROW.match, lines)):
            rule, _, shown = match.groups()
            assert rule not in rules, f"{rule} has two lines"
            assert heading.startswith(f"{rule[0]}."), f"{rule} stands under {heading!r}"
            rules[rule] = shown
    return rules


def unbuilt() -> set[str]:
    """The rules that the page says are not built."""
    return {match.group(1) for match in filter(None, map(UNBUILT_ROW.match, PARTS[UNBUILT]))}


def rules_in(text: str) -> set[str]:
    """The rules that a text cites, ranges (`D1–D3`) included."""
    cited = {letter + number for letter, number in RULE.findall(text)}
    for letter, first, last in RANGE.findall(text):
        cited |= {f"{letter}{number}" for number in range(int(first), int(last) + 1)}
    return cited


def lines() -> Iterator[tuple[str, str]]:
    """Every line under src/ with its place. Rules are cited in docstrings and comments, and no code is named so."""
    for path in sorted((ROOT / "src").rglob("*.py")):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            yield f"{path.relative_to(ROOT).as_posix()}:{number}", line


def citations(cited_in: re.Pattern[str] | None = None) -> dict[str, list[str]]:
    """Where in src/ each rule, or each match of a pattern, is cited."""
    found: dict[str, list[str]] = defaultdict(list)
    for place, line in lines():
        names = rules_in(line) if cited_in is None else {match.group(1) for match in cited_in.finditer(line)}
        for name in names:
            found[name].append(place)
    return found


@cache
def defined_tests() -> frozenset[str]:
    """`file below tests/::name` of every test function there is; nothing is imported."""
    found: set[str] = set()
    for path in TESTS.rglob("test_*.py"):
        where = path.relative_to(TESTS).as_posix()
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                found.add(f"{where}::{node.name}")
    return frozenset(found)


def named_tests(shown: str) -> list[str]:
    return re.findall(r"`([^`]+)`", shown)


def exists(named: str, tests: Collection[str]) -> bool:
    pattern = named if "::" in named else f"*::{named}"
    return any(fnmatchcase(test, pattern) for test in tests)


def test_every_rule_that_the_code_cites_is_on_the_page() -> None:
    known = built().keys() | unbuilt()
    missing = {rule: places for rule, places in citations().items() if rule not in known}
    assert not missing, "docs/protocol.md lacks rules that src/ cites"


def test_every_family_that_the_code_cites_has_its_part() -> None:
    headings = {heading[0] for heading in PARTS if re.match(r"[A-Z]\. ", heading)}
    for cited, places in citations(FAMILY).items():
        assert set(cited.split(", ")) <= headings, (
            f"docs/protocol.md has no part for {cited}, cited in {places}"
        )


def test_every_section_of_the_authority_that_the_code_cites_is_on_the_page() -> None:
    headings = {match.group(1) for heading in PARTS if (match := re.match(r"§(\d+(?:\.\d+)?) ", heading))}
    missing: dict[str, list[str]] = defaultdict(list)
    for place, line in lines():
        for first, more in SECTION.findall(line):
            for section in {first, *re.findall(r"§(\d+(?:\.\d+)?)", more)} - headings:
                missing[section].append(place)
    assert not missing, "docs/protocol.md lacks sections of the authority that src/ cites"


def test_every_rule_of_the_design_that_the_code_cites_is_on_the_page() -> None:
    listed = {match.group(1) for match in map(DESIGN_ROW.match, PARTS["Rules of the design"]) if match}
    missing = {rule: places for rule, places in citations(DESIGN).items() if rule not in listed}
    assert not missing, "docs/protocol.md lacks rules of the design that src/ cites"


def test_no_rule_is_both_built_and_not() -> None:
    assert not built().keys() & unbuilt()


def test_no_family_has_a_gap() -> None:
    """A rule that is neither built nor listed as not built has been forgotten."""
    numbers: dict[str, set[int]] = defaultdict(set)
    for rule in built().keys() | unbuilt():
        numbers[rule[0]].add(int(rule[1]))
    assert numbers.keys() == set(FAMILIES)
    for family, present in numbers.items():
        assert present == set(range(1, max(present) + 1)), f"family {family} has a gap"


@pytest.mark.parametrize("rule", sorted(built()))
def test_a_rule_names_tests_and_they_exist(rule: str) -> None:
    named = named_tests(built()[rule])
    assert named, f"{rule} names no test: write one, or list the rule as not built"
    tests = defined_tests()
    gone = [name for name in named if not exists(name, tests)]
    assert not gone, f"{rule} names tests that do not exist"


def test_a_test_that_is_named_after_a_rule_is_on_the_page() -> None:
    """A test called test_d3_… is about rule D3, so the page has that rule, and shows the test with it."""
    rules = built()
    for test in sorted(defined_tests()):
        match = re.match(r".*::test_([a-z])([1-9])_", test)
        if match is None or match.group(1).upper() not in FAMILIES:
            continue
        rule = f"{match.group(1).upper()}{match.group(2)}"
        assert rule in rules, f"{test} is named after {rule}, which docs/protocol.md does not have"
        assert any(exists(name, {test}) for name in named_tests(rules[rule])), f"{rule} does not show {test}"


def test_a_page_is_read_as_it_is_written() -> None:
    """What the other tests rely on: ranges, families and sections are found in a line."""
    assert rules_in("(PROTOCOL D1–D3, C4)") == {"D1", "D2", "D3", "C4"}
    assert rules_in("(PROTOCOL H1 to H3)") == {"H1", "H2", "H3"}
    assert rules_in("the T1000 and utf8 of D10") == set()
    assert FAMILY.findall("(PROTOCOL F, K)") == ["F, K"]
    assert SECTION.findall("authority §6, §6.1") == [("6", ", §6.1")]
