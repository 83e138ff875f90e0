"""Remote folders, in the buckets of moto's server on 127.0.0.1."""

import gzip
import json
from itertools import count
from pathlib import Path

import fsspec
import pytest
import zstandard
from moto.server import ThreadedMotoServer
from s3fs import S3FileSystem
from tests.e2e.small import write_corpus
from tests.faults.children import list_differences

import bertkit
from bertkit.base.extras import describe_install
from bertkit.base.transfers import fetch
from bertkit.checkpoints.hub import resolve_model
from bertkit.checkpoints.run_folder import find_checkpoint
from bertkit.cli.main import main
from bertkit.data.shards import ShardSet
from bertkit.tokenization.tokenizer import Tokenizer

NUMBERS = count()


@pytest.fixture(scope="module")
def service():
    """A service like S3, and the environment in which fsspec finds it."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", f"http://{host}:{port}")
        patch.setenv("AWS_ACCESS_KEY_ID", "somebody")
        patch.setenv("AWS_SECRET_ACCESS_KEY", "secret-of-somebody")
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.setenv("AWS_MAX_ATTEMPTS", "1")
        yield fsspec.filesystem("s3", skip_instance_cache=True, use_listings_cache=False)
    server.stop()


@pytest.fixture
def bucket(service, tmp_path, monkeypatch):
    """An empty bucket of this test alone, and an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    name = f"bucket-{next(NUMBERS)}"
    service.mkdir(name)
    return Bucket(service, name)


class Bucket:
    """A bucket, and its content by name."""

    def __init__(self, filesystem: fsspec.AbstractFileSystem, name: str) -> None:
        self.filesystem, self.name, self.url = filesystem, name, f"s3://{name}"

    def __setitem__(self, name: str, content: bytes) -> None:
        self.filesystem.pipe_file(f"{self.name}/{name}", content)

    def __getitem__(self, name: str) -> bytes:
        return self.filesystem.cat_file(f"{self.name}/{name}")

    def names(self, under: str = "") -> set[str]:
        found = self.filesystem.find(f"{self.name}/{under}".rstrip("/"))
        return {key.removeprefix(f"{self.name}/") for key in found}


def prepare(workshop: Path, output: object, *inputs: object) -> int:
    words = ["--tokenizer", workshop / "tokenizer", "--output", output, "--held-out", 0.1, *inputs]
    return main(["prepare", *map(str, words)])


def list_files(folder: Path) -> dict[str, bytes]:
    """The content of all files below a folder, but for locks."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def write_parts(tmp_path: Path, bucket: Bucket) -> Path:
    """Write the same corpus as local files and into the bucket, compressed and not."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    for number in range(3):
        write_corpus(tmp_path / "some.txt", 40, seed=number)
        (folder / f"part-{number}.txt").write_bytes((tmp_path / "some.txt").read_bytes())
    plain = folder / "part-1.txt"
    (folder / "part-1.txt.gz").write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()
    lines = [json.dumps({"text": text}) for text in (folder / "part-2.txt").read_text().split("\n")]
    packed = zstandard.compress("\n".join(lines).encode())
    (folder / "part-2.jsonl.zst").write_bytes(packed)
    (folder / ".hidden.txt").write_text("Hidden.\n")
    for path in folder.iterdir():
        bucket[f"corpus/{path.name}"] = path.read_bytes()
    return folder


@pytest.mark.parametrize("named", ["corpus/", "corpus/part-*"])
def test_text_of_a_bucket_is_prepared_as_on_the_disk(workshop, bucket, tmp_path, named):
    folder = write_parts(tmp_path, bucket)
    assert prepare(workshop, tmp_path / "here", folder) == 0
    assert prepare(workshop, tmp_path / "there", f"{bucket.url}/{named}") == 0
    here, there = (ShardSet.open(tmp_path / name, verify="all") for name in ("here", "there"))
    assert here.fingerprint == there.fingerprint
    assert not (tmp_path / "cache").exists()


def test_a_changed_object_is_noticed(workshop, bucket, tmp_path, capsys):
    write_parts(tmp_path, bucket)
    assert prepare(workshop, tmp_path / "shards", f"{bucket.url}/corpus") == 0
    assert prepare(workshop, tmp_path / "shards", f"{bucket.url}/corpus") == 0
    assert "already done" in capsys.readouterr().out
    bucket["corpus/part-0.txt"] = bucket["corpus/part-0.txt"].upper()  # as many bytes as before
    assert prepare(workshop, tmp_path / "shards", f"{bucket.url}/corpus") == 2
    assert "corpus/part-0.txt has changed" in capsys.readouterr().err


@pytest.mark.parametrize("named", ["texts/", "texts/*.csv", "texts/a.csv"])
def test_rows_of_a_bucket_are_embedded_as_on_the_disk(model, bucket, tmp_path, named):
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.csv").write_text("text\na cat\na dog\n")
    (folder / "b.csv").write_text("text\nthe garden\n")
    for path in folder.iterdir():
        bucket[f"texts/{path.name}"] = path.read_bytes()
    vectors = tmp_path / "here.jsonl", tmp_path / "there.jsonl"
    for place, output in zip((tmp_path, bucket.url), vectors, strict=True):
        assert main(["embed", "--model", model, f"{place}/{named}", "--output", str(output)]) == 0
    assert vectors[0].read_text() == vectors[1].read_text()
    words = ["embed", "--model", model, f"{bucket.url}/{named}", "--output", str(vectors[1])]
    assert main(words) == 0
    bucket["texts/a.csv"] = b"text\na cow\na dog\n"
    assert main(words) == 2


@pytest.mark.parametrize("secret", ["s3://me:hush@bucket/x", "s3://bucket/x?X-Amz-Signature=hush"])
def test_a_url_with_a_secret_is_refused_and_not_repeated(workshop, tmp_path, secret, capsys):
    assert prepare(workshop, tmp_path / "shards", secret) == 2
    assert "holds a password or a signature" in capsys.readouterr().err
    for words in (
        ["embed", "--model", secret, str(tmp_path / "a.txt")],
        ["embed", "--model", "s3://bucket/model", secret],
        ["report", secret],
        ["inspect", secret],
        ["pretrain", "--data", secret, "--output", str(tmp_path / "run"), "--steps", "1"],
        ["pretrain", "--data", str(tmp_path), "--output", secret, "--steps", "1"],
    ):
        assert main(words) == 2, words
        error = capsys.readouterr().err
        assert error.startswith("bertkit: ")
        assert "hush" not in error
    assert not [path for path in tmp_path.rglob("*") if "hush" in str(path)]


def test_what_is_not_there_or_not_allowed_is_one_line(workshop, bucket, tmp_path, capsys):
    bucket["empty/.hidden"] = b""
    for name, message in {
        f"{bucket.url}/none": "none doesn't exist, and matches no file",
        f"{bucket.url}/empty": "empty has no file (hidden ones don't count)",
        "s3://no-such-bucket/corpus/": "corpus/ doesn't exist, and matches no file",
        "gs://bucket/corpus": f"a package that isn't installed; {describe_install('gcs')}",
        "nosuch://bucket/corpus": "Protocol not known: nosuch",
    }.items():
        assert prepare(workshop, tmp_path / "shards", name) == 2
        lines = capsys.readouterr().err.splitlines()
        assert message in lines[-1]
        assert len(lines) == 1


def test_a_service_that_is_away_is_one_line(workshop, bucket, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://me:hush@127.0.0.1:9")
    monkeypatch.setattr(S3FileSystem, "retries", 1)
    monkeypatch.setattr(S3FileSystem, "_cache", {})  # file systems that know the old endpoint
    assert prepare(workshop, tmp_path / "shards", f"{bucket.url}/away") == 2
    error = capsys.readouterr().err
    assert "can't be read" in error
    assert "run the command again" in error
    assert "hush" not in error


def test_a_connection_that_breaks_in_the_middle_leaves_no_text_out(
    workshop, bucket, tmp_path, monkeypatch, capsys
):
    write_parts(tmp_path, bucket)
    monkeypatch.setattr("s3fs.core.S3File._fetch_range", refuse)
    assert prepare(workshop, tmp_path / "shards", f"{bucket.url}/corpus", "--workers", "1") == 2
    error = capsys.readouterr().err
    assert f"{bucket.url}/corpus/part-0.txt can't be read: broken by a test" in error
    assert not (tmp_path / "shards" / "manifest.json").exists()


def refuse(*_: object) -> None:
    raise ConnectionResetError("broken by a test")


def run_words(data: object, workshop: Path, output: object) -> list[str]:
    words = f"pretrain --data {data} --size {workshop}/nano.json --output {output} --steps 12"
    words += " --checkpoint-every 4 --keep 2 --batch-size 4 --max-length 32 --eval-examples 8"
    return [*words.split(), "--device", "cpu"]


@pytest.fixture(scope="module")
def reference(workshop):
    """A run on the disk."""
    assert main(run_words(workshop / "shards", workshop, workshop / "reference")) == 0
    return workshop / "reference"


def test_shards_of_a_bucket_are_those_of_the_disk(workshop, bucket, capsys):
    words = [workshop / "corpus.txt", "--workers", "1"]
    assert prepare(workshop, f"{bucket.url}/shards", *words) == 0
    assert f"uploaded {bucket.url}/shards\n" in capsys.readouterr().err
    here = {f"shards/{name}": each for name, each in list_files(workshop / "shards").items()}
    assert bucket.names("shards") == here.keys()
    assert {name: bucket[name] for name in here} == here
    assert prepare(workshop, f"{bucket.url}/shards", *words) == 0
    captured = capsys.readouterr()
    assert f"{bucket.url}/shards is already done" in captured.out
    assert "nothing is uploaded" in captured.err
    assert ShardSet.open(f"{bucket.url}/shards", verify="all").folder != workshop / "shards"


def test_a_finished_run_is_uploaded_and_its_model_opened(
    workshop, reference, bucket, tmp_path, monkeypatch, capsys
):
    words = run_words(workshop / "shards", workshop, f"{bucket.url}/runs/base")
    assert main(words) == 0
    assert f"uploaded {bucket.url}/runs/base\n" in capsys.readouterr().err
    assert main(words) == 0
    assert "nothing is uploaded" in capsys.readouterr().err
    names = {f"runs/base/{name}" for name in list_files(reference) if "tensorboard" not in name}
    assert {name for name in bucket.names("runs") if "tensorboard" not in name} == names
    differences = list_differences(reference, fetch(f"{bucket.url}/runs/base"))
    assert {*differences} <= {"names", ".lock"}  # which aren't uploaded
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "another"))
    model = resolve_model(f"{bucket.url}/runs/base")
    assert [path.name for path in model.glob("checkpoints/*")] == ["step-00000012"]
    assert not [*model.glob("checkpoints/*/optimizer*")]
    find_checkpoint(model, reading=["model.safetensors"])
    assert main(words) == 2
    assert "has a result, and this machine has no copy to resume" in capsys.readouterr().err


def test_a_break_while_uploading_leaves_no_file_that_marks_completion(
    workshop, bucket, monkeypatch, capsys
):
    words = [workshop / "corpus.txt", "--workers", "1"]
    with monkeypatch.context() as patch:
        put, left = S3FileSystem._put_file, iter(range(3))

        async def put_some(*given, **options):
            return refuse() if next(left, None) is None else await put(*given, **options)

        patch.setattr(S3FileSystem, "_put_file", put_some)
        patch.setattr(S3FileSystem, "_cache", {})  # file systems that have bound the old one
        assert prepare(workshop, f"{bucket.url}/shards", *words) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last.startswith(f"bertkit: {bucket.url}/shards/")
    assert last.endswith(
        "can't be written: broken by a test; correct that, and run the command again"
    )
    assert "shards/manifest.json" not in bucket.names()
    assert prepare(workshop, f"{bucket.url}/shards", *words) == 0
    assert "already done" in capsys.readouterr().out
    assert bucket.names("shards") == {f"shards/{name}" for name in list_files(workshop / "shards")}


def test_vectors_are_written_to_a_bucket(model, bucket, tmp_path, monkeypatch, capsys):
    (tmp_path / "texts.txt").write_text("a cat\na dog\n")
    words = ["embed", "--model", model, str(tmp_path / "texts.txt"), "--output"]
    assert main([*words, str(tmp_path / "v.npy")]) == 0
    bucket["vectors/v.npy-of-another"] = b""
    assert main([*words, f"{bucket.url}/vectors/v.npy"]) == 0
    assert f"2 texts → {bucket.url}/vectors/v.npy [2, " in capsys.readouterr().out
    assert bucket.names("vectors") == {
        f"vectors/{name}" for name in ("v.npy", "v.npy.json", "v.npy-of-another")
    }
    assert bucket["vectors/v.npy"] == (tmp_path / "v.npy").read_bytes()
    assert main([*words, f"{bucket.url}/vectors/v.npy"]) == 0
    assert "already done" in capsys.readouterr().out


def test_each_file_of_a_bucket_has_its_vectors_in_another(model, bucket, tmp_path, monkeypatch):
    for name in ("a", "b", "c"):
        bucket[f"texts/{name}.txt"] = f"a cat\n{name}\n".encode()
    for path in Path(model).iterdir():
        bucket[f"model/{path.name}"] = path.read_bytes()
    place = bucket.url
    words = f"embed {place}/texts/ --model {place}/model --output {place}/vectors/".split()
    for share in ("0/2", "1/2"):
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / share[0]))
        assert main([*words, "--output-format", "npy", "--shard", share]) == 0
    made = {name for name in bucket.names("vectors") if name.endswith(".npy")}
    assert made == {f"vectors/{name}.txt.npy" for name in ("a", "b", "c")}
    bucket["texts/b.txt"] = b"a dog\n"
    before = {name: bucket[name] for name in made}
    assert main([*words, "--output-format", "npy"]) == 0
    changed = {name for name in made if bucket[name] != before[name]}
    assert changed == {"vectors/b.txt.npy"}


def test_python_takes_urls_as_the_command_line_does(workshop, bucket):
    bucket["corpus.txt"] = (workshop / "corpus.txt").read_bytes()
    texts, output = f"{bucket.url}/corpus.txt", f"{bucket.url}/shards"
    shards = bertkit.prepare(
        texts, Tokenizer.load(workshop / "tokenizer"), output=output, held_out=0.1, workers=1
    )
    assert shards.manifest.raw_bytes == ShardSet.open(workshop / "shards").manifest.raw_bytes
    found = bertkit.pretrain(
        Path(output),
        output=f"{bucket.url}/run",
        size=str(workshop / "nano.json"),
        steps=2,
        batch_size=4,
        max_length=32,
        device="cpu",
    )
    assert found.num_steps == 2
    assert "run/checkpoints/step-00000002/manifest.json" in bucket.names()


def test_other_commands_say_that_they_write_to_no_url(model, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["convert", model, "s3://bucket/converted"]) == 2
    assert "is a URL, to which this isn't written; name a path" in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]
