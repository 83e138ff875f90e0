"""A file of many is made once, and again where its content or the settings changed."""

from bertkit.base.errors import InputError
from bertkit.data.file_parts import FilePart, FilesJob


def test_unfinished_work_is_resumed_and_that_of_other_content_is_dropped(tmp_path):
    calls = []

    def make(source, output, *, overwrite, restart):
        calls.append((source, overwrite, restart))
        raise InputError("interrupted")

    def run(version, **made_with):
        job = FilesJob(make, tmp_path, ".npy", {"pooling": "mean", **made_with})
        assert str(job(FilePart("a", "texts/a", 10, version), lambda _: None).error) == (
            "interrupted"
        )
        return calls.pop()

    assert run("1") == ("texts/a", False, False)
    assert run("1") == ("texts/a", True, False)
    assert run("2") == ("texts/a", True, True)
    assert run("2") == ("texts/a", True, False)
    assert run("2", pooling="cls") == ("texts/a", True, True)
