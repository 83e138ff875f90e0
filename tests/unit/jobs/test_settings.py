"""Sizes as people write them."""

import pytest
from pydantic import ValidationError

from bertkit.jobs.settings import ConvertSettings


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("5GB", 5_000_000_000),
        ("20 MiB", 20 << 20),
        ("1500", 1500),
        ("2kb", 2000),
        ("3GiB", 3 << 30),
    ],
)
def test_a_size_is_a_number_and_a_unit(text, size_bytes):
    assert ConvertSettings(max_shard_size=text).shard_bytes == size_bytes


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("5XB", "must be a whole number"),
        ("much", "must be a whole number"),
        ("-5GB", "must be a whole number"),
        ("1.5GB", "must be a whole number"),
        ("999", "at least 1000 bytes"),
    ],
)
def test_what_is_no_size_is_refused(text, message):
    with pytest.raises(ValidationError, match=message):
        ConvertSettings(max_shard_size=text)
