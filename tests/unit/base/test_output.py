"""The one door to what a command writes."""

import errno
import fcntl
import os
from pathlib import Path

import pytest

from bertkit.base.errors import ResumeError, SettingsError, StorageError
from bertkit.base.files import durable_folder, write_file
from bertkit.base.output import find_place, list_names, open_output, refuse_input

both_kinds = pytest.mark.parametrize("is_workplace", [False, True])


@both_kinds
def test_a_held_output_is_refused_and_let_go_at_the_end(tmp_path, is_workplace):
    output = tmp_path / "new" / "output"
    with (
        open_output(output, "writing", is_workplace=is_workplace),
        pytest.raises(ResumeError, match=r"another process is writing .*output; wait for it, or"),
        open_output(output, "writing", is_workplace=is_workplace, flag="--index"),
    ):
        pass
    with open_output(output, "writing", is_workplace=is_workplace):
        pass


@both_kinds
@pytest.mark.parametrize("error", [None, KeyboardInterrupt])
def test_nothing_stays_of_work_that_wrote_nothing(tmp_path, is_workplace, error):
    try:
        with open_output(tmp_path / "a" / "b" / "c", "writing", is_workplace=is_workplace):
            assert (tmp_path / "a" / "b").is_dir()
            if error is not None:
                raise error
    except KeyboardInterrupt:
        pass
    assert list(tmp_path.iterdir()) == []


def test_the_lock_beside_an_output_goes_and_that_in_a_workplace_stays(tmp_path):
    with open_output(tmp_path / "file", "writing") as place:
        assert (tmp_path / "file.lock").exists()
        write_file(place, b"x")
    with open_output(tmp_path / "folder", "working", is_workplace=True) as place:
        assert list_names(place) == set()
        write_file(place / "file", b"x")
        (place / "rest.partial").touch()
        assert list_names(place) == {"file"}
    found = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")}
    assert found == {"file", "folder", "folder/.lock", "folder/file", "folder/rest.partial"}


@both_kinds
def test_a_lock_that_a_killed_process_left_stops_nobody(tmp_path, is_workplace):
    (tmp_path / "output").mkdir()
    (tmp_path / "output" / ".lock").touch()
    (tmp_path / "output.lock").touch()
    with open_output(tmp_path / "output", "writing", is_workplace=is_workplace):
        pass


@both_kinds
@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_told_with_what_to_do(
    tmp_path, monkeypatch, is_workplace, number
):
    def refuse(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    message = r"lock can't be locked, since its file system has no locks .*; write to a local disk"
    with (
        pytest.raises(StorageError, match=message),
        open_output(tmp_path / "output", "writing", is_workplace=is_workplace),
    ):
        pass


@both_kinds
def test_an_output_is_checked_before_anything_is_made_and_again_when_it_is_held(
    tmp_path, is_workplace
):
    output, held = tmp_path / "output", []

    def check(place: Path) -> None:
        held.append(any(path.name.endswith(".lock") for path in tmp_path.rglob("*")))
        if len(held) == num_calls:
            raise SettingsError("no")

    for num_calls in (1, 2):
        held.clear()
        with (
            pytest.raises(SettingsError, match="no"),
            open_output(output, "writing", check=check, is_workplace=is_workplace),
        ):
            pass
        assert held == [False, True][:num_calls]
        assert list(tmp_path.iterdir()) == []


def test_what_cant_be_held_is_an_error(tmp_path):
    (tmp_path / ".lock").mkdir()
    (tmp_path / "file").touch()
    for output, message in (
        (tmp_path, r"\.lock can't be written"),
        (tmp_path / "file", "is a file where a folder is to be made"),
        (tmp_path / ("a" * 300), "can't be written: File name too long"),
    ):
        with (
            pytest.raises(StorageError, match=message),
            open_output(output, "writing", is_workplace=True),
        ):
            pass


def test_a_link_stays_a_link_and_what_it_leads_to_is_written(tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "file").write_text("old")
    for name in ("file", "folder"):
        (tmp_path / name).symlink_to(tmp_path / "far" / name)
    (tmp_path / "far" / "folder").mkdir()
    with open_output(tmp_path / "file", "writing") as place:
        assert (tmp_path / "far" / "file.lock").exists()
        write_file(place, b"new")
    with open_output(tmp_path / "folder", "writing") as place, durable_folder(place) as folder:
        write_file(folder / "file", b"new")
    for name, path in (("file", "file"), ("folder", "folder/file")):
        assert (tmp_path / name).is_symlink()
        assert (tmp_path / "far" / path).read_bytes() == b"new"
    assert {path.name for path in tmp_path.iterdir()} == {"far", "file", "folder"}
    assert {path.name for path in (tmp_path / "far").iterdir()} == {"file", "folder"}
    assert find_place(tmp_path / "far" / "file") == tmp_path / "far" / "file"


def test_links_to_nothing_pipes_and_devices_are_refused(tmp_path):
    (tmp_path / "link").symlink_to("nowhere")
    (tmp_path / "circle").symlink_to("circle")
    for output in ("link", "link/in/it", "circle"):
        with pytest.raises(SettingsError, match=r"is a link to (nowhere|circle), which"):
            find_place(tmp_path / output)
    os.mkfifo(tmp_path / "pipe")
    for output in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(SettingsError, match="is a pipe or a device, which can't be replaced"):
            find_place(output)


def test_outputs_and_inputs_that_mix_are_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").touch()
    (tmp_path / "other").symlink_to("texts")
    (tmp_path / "twin.txt").hardlink_to(tmp_path / "texts" / "a.txt")
    for output, source, message in (
        ("texts", "texts", "texts is the input"),
        ("other", "texts/", "other is the input"),
        ("twin.txt", "texts/a.txt", r"twin\.txt is the input"),
        ("texts/new", "other", "texts/new lies in the input other"),
        ("other/new/newer", "texts", "lies in the input texts"),
        ("texts", "texts/a.txt", r"texts holds the input texts/a\.txt"),
        ("texts/new", "texts/*", r"would be read as part of the input texts/\*"),
        ("texts/new/newer", "te*/*", "would be read as part of the input"),
        ("texts/b.txt", f"{tmp_path}/**/*.txt", "would be read as part of the input"),
    ):
        with pytest.raises(SettingsError, match=f"{message}.*; name another --output"):
            refuse_input(Path(output), source)


@pytest.mark.parametrize(
    ("output", "source"),
    [
        ("texts-too", "texts"),
        ("texts/b.txt", "texts/a.txt"),
        ("new", "-"),
        ("google-bert/base", "google-bert/base"),
        ("texts/new", "texts/*.txt"),
    ],
)
def test_outputs_and_inputs_apart_are_taken(tmp_path, monkeypatch, output, source):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").touch()
    refuse_input(Path(output), source)


def test_a_file_of_the_user_that_has_the_name_of_a_lock_stays(tmp_path):
    (tmp_path / "poetry.lock").write_text("content")
    with open_output(tmp_path / "poetry", "writing"):
        pass
    assert (tmp_path / "poetry.lock").read_text() == "content"
