import pytest

from bertkit.base.errors import MissingExtraError
from bertkit.base.wings import has_wing, list_installed, load_object

THERE = "bertkit.base.errors:BertkitError"
GONE = "bertkit.no_such_wing.model:Model"


def test_an_object_is_loaded_by_its_address():
    assert load_object(THERE).__name__ == "BertkitError"


def test_a_wing_that_is_deleted_is_named():
    with pytest.raises(MissingExtraError, match=r"needs bertkit\.no_such_wing"):
        load_object(GONE)


def test_entries_of_a_deleted_wing_are_left_out():
    assert has_wing(THERE)
    assert not has_wing(GONE)
    assert list_installed({"there": THERE, "gone": GONE}) == {"there": THERE}
