"""What the MySQL wire's numbers mean where no server can be made to say them in a test."""

import pytest
from asyncmy.errors import OperationalError

from doonce.db.faults import OutOfSpace
from doonce.db.mysql_faults import classify


@pytest.mark.parametrize("code", [1021, 1114])
def test_a_full_disk_and_a_full_table_are_told_as_what_they_are(code: int) -> None:
    """ER_DISK_FULL and ER_RECORD_FILE_FULL: nothing was written, and freeing space is all there is to do."""
    assert type(classify(OperationalError(code, "said the server"))) is OutOfSpace
