"""Every folder of an encoder-decoder that is hostile is refused by its own error, or accepted."""

import sys

import pytest
from tests.hostile.watched import run_modules
from tests.waiting import MAX_SECONDS

MAX_EXTRA_BYTES = 300_000_000


@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured through /proc")
@pytest.mark.parametrize("limit", [":1", pytest.param("", marks=pytest.mark.exhaustive)])
def test_each_case_comes_to_its_own_error_or_is_accepted(limit, tmp_path):
    rows = run_modules(tmp_path, f"decoders.seq2seq_files{limit}")
    assert rows
    assert not [f"{row['name']}: {row['problem']}" for row in rows if row["problem"]]
    assert not [row for row in rows if row["seconds"] > MAX_SECONDS]
    assert not [row for row in rows if row["extra_bytes"] > MAX_EXTRA_BYTES]
