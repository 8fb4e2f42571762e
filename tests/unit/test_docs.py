"""Links between the project's pages lead somewhere, and what a page lists is all there is."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)#\s]+)")


@pytest.mark.parametrize(
    "page",
    sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]),
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_every_link_leads_to_a_file(page: Path) -> None:
    missing = [link for link in LINK.findall(page.read_text()) if not (page.parent / link).exists()]
    assert not missing


def test_the_page_on_webhooks_names_every_pack_that_has_one() -> None:
    """A reader takes what is not listed for what is not there."""
    (line,) = [
        line
        for line in (ROOT / "docs/ingress.md").read_text().splitlines()
        if "come with doonce, by name" in line
    ]
    listed = re.findall(r"`([a-z-]+)`", line.partition(":")[2].partition(". `doonce")[0])
    shipped = [pack.parent.name for pack in sorted((ROOT / "packs").glob("*/pack.toml"))]
    assert listed == [
        name for name in shipped if "[webhooks." in (ROOT / "packs" / name / "pack.toml").read_text()
    ]
