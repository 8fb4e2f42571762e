"""Reviewers see the SQL of every statement on every dialect, and a change of it is a change in the review."""

import difflib

import pytest
from tests.store.db.snapshot_sql import FORMS, file_of, snapshot


@pytest.mark.parametrize("form", FORMS)
def test_the_sql_of_every_statement_is_what_was_reviewed(form: str) -> None:
    reviewed, now = file_of(form).read_text().splitlines(), snapshot(form).splitlines()
    difference = "\n".join(difflib.unified_diff(reviewed, now, "reviewed", "now", lineterm="", n=2))
    assert not difference, f"run `make snapshots` and review the difference:\n{difference}"
