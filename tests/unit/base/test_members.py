"""No name and no link leads out of a foreign folder."""

import pytest

from bertkit.base.errors import MissingFileError, StorageError, UnsafeFileError
from bertkit.base.members import check_name, find_member, has_member


@pytest.mark.parametrize("name", ["a", "a/b.txt", "sub/../a".replace("../", ""), "ä", "x" * 255])
def test_plain_names_pass(name):
    check_name("index", name)


@pytest.mark.parametrize(
    "name", ["", "..", "../a", "a/../../b", "/a", "a\\b", "C:a", "a\n", "a\0", "x" * 256]
)
def test_other_names_are_refused_with_their_source(name):
    with pytest.raises(UnsafeFileError, match=r"^index names .* expected a name inside"):
        check_name("index", name)


def test_a_member_is_found_through_links_inside_the_folder(tmp_path):
    (tmp_path / "real").write_text("x")
    (tmp_path / "link").symlink_to("real")
    assert find_member(tmp_path, "link") == tmp_path / "link"
    assert has_member(tmp_path, "link")
    assert not has_member(tmp_path, "other")


def test_a_missing_member_and_a_circle_are_told(tmp_path):
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")
    for name in ("one", "other"):
        with pytest.raises(MissingFileError, match=f"{name} doesn't exist"):
            find_member(tmp_path, name)


def test_a_link_that_leads_nowhere_is_a_member_that_is_missing(tmp_path):
    (tmp_path / "link").symlink_to("other")
    assert has_member(tmp_path, "link")
    with pytest.raises(MissingFileError, match="link doesn't exist"):
        find_member(tmp_path, "link")


def test_a_name_that_the_system_has_no_room_for_is_told(tmp_path):
    with pytest.raises(StorageError, match="can't be read: File name too long"):
        has_member(tmp_path, "字" * 200)


def test_a_link_out_of_the_folder_is_refused(tmp_path):
    (tmp_path / "secret").write_text("x")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "link").symlink_to("../secret")
    with pytest.raises(UnsafeFileError, match=r"leads out of its folder, to .*secret"):
        find_member(tmp_path / "model", "link")


def test_a_snapshot_may_lead_to_the_blobs_of_its_cache_only(tmp_path):
    snapshot = tmp_path / "models--a--b" / "snapshots" / "1"
    for folder in (snapshot, tmp_path / "models--a--b" / "blobs", tmp_path / "blobs"):
        folder.mkdir(parents=True)
        (folder.parent / "x").write_text("")
        (folder / "blob").write_text("")
    (snapshot / "own").symlink_to("../../blobs/blob")
    (snapshot / "shared").symlink_to("../../../blobs/blob")
    (snapshot / "stolen").symlink_to("../../x")
    assert find_member(snapshot, "own").is_file()
    assert find_member(snapshot, "shared").is_file()
    with pytest.raises(UnsafeFileError, match="leads out"):
        find_member(snapshot, "stolen")
