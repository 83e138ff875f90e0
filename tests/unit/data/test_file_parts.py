"""A file of many is made once, and again where its content or the settings changed."""

from bertkit.base.errors import InputError
from bertkit.data.file_parts import FilePart, FilesJob


def test_what_the_job_began_may_be_overwritten(tmp_path):
    calls = []

    def make(source, output, *, overwrite):
        calls.append((source, overwrite))
        raise InputError("interrupted")

    def run(version, **made_with):
        job = FilesJob(make, tmp_path, ".npy", {"pooling": "mean", **made_with})
        assert str(job(FilePart("a", "texts/a", 10, version), lambda _: None).error) == (
            "interrupted"
        )
        return calls.pop()

    assert run("1") == ("texts/a", False)
    assert run("1") == ("texts/a", True)
    assert run("2", pooling="cls") == ("texts/a", True)
