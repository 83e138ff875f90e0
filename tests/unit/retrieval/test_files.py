"""One output for each of many files: whoever makes them, they are the same, and made once."""

from pathlib import Path

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from tests.unit.retrieval.small_embedding import contents, make_texts, settings, write_texts

from bertkit.base.errors import InputError, ResumeError, SettingsError
from bertkit.base.parts import PartsSettings
from bertkit.cli.main import main
from bertkit.data.file_parts import RECORDS, FilesSettings
from bertkit.inference.embeddings.embedder import Embedder
from bertkit.retrieval.embed import embed, embed_files
from bertkit.retrieval.features import extract_files
from bertkit.retrieval.settings import FeaturesSettings

NAMES = ("a.txt", "b.txt", "more/a.txt")


@pytest.fixture
def texts(tmp_path):
    (tmp_path / "texts" / "more").mkdir(parents=True)
    for seed, name in enumerate(NAMES):
        write_texts(tmp_path / "texts" / name, make_texts(20, seed))
    return tmp_path / "texts"


def times(folder: Path) -> dict[str, int]:
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*.npy")}


def test_each_file_has_what_the_command_for_one_file_writes(model, texts, tmp_path):
    result = embed_files(model, [str(texts)], tmp_path / "out", settings())
    assert (result.num_files, result.num_made, result.num_missing) == (3, 3, 0)
    assert result.counts["texts"] == 60
    for name in NAMES:
        embed(model, texts / name, tmp_path / "one.npy", settings(overwrite=True))
        assert (tmp_path / "out" / f"{name}.npy").read_bytes() == (
            tmp_path / "one.npy"
        ).read_bytes()
    before = times(tmp_path / "out")
    assert embed_files(model, [str(texts)], tmp_path / "out", settings()).num_made == 0
    assert times(tmp_path / "out") == before


@pytest.mark.exhaustive
def test_any_engine_writes_the_same_bytes(model, texts, tmp_path, ray_cluster):
    ways = {
        "one": FilesSettings(workers=1, threads=1),
        "two": FilesSettings(workers=2, threads=1),
        "ray": FilesSettings(run_on="ray", workers=2, threads=1),
    }
    for name, files in ways.items():
        embed_files(model, [str(texts)], tmp_path / name, settings(), files)
    assert contents(tmp_path / "one") == contents(tmp_path / "two") == contents(tmp_path / "ray")


def test_shards_share_the_files(model, texts, tmp_path):
    shares = [FilesSettings(shard=f"{number}/2") for number in range(2)]
    found = [embed_files(model, [str(texts)], tmp_path / "out", settings(), one) for one in shares]
    assert [(one.num_made, one.num_missing) for one in found] == [(2, 1), (1, 0)]
    embed_files(model, [str(texts)], tmp_path / "whole", settings())
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_a_bad_row_ends_its_file_alone_and_a_rerun_makes_the_rest(model, texts, tmp_path, capsys):
    (texts / "b.jsonl").write_text('{"text": "a cat"}\n{"text": 3}\n')
    words = f"embed --model {model} {texts} --output {tmp_path}/out --engine torch".split()
    assert main(words) == 2
    told = capsys.readouterr().err
    assert f"bertkit: {texts}/b.jsonl, row 2 has a number where a text should be" in told
    assert "(1 of 4 files failed; the same command makes what is missing)" in told
    before = times(tmp_path / "out")
    assert len(before) == 3
    (texts / "b.jsonl").write_text('{"text": "a cat"}\n')
    assert main(words) == 0
    assert "4 files, 3 of them done before; 1 texts" in capsys.readouterr().out
    assert before.items() < times(tmp_path / "out").items()


def test_the_good_files_are_uploaded_and_another_machine_keeps_them(
    model, texts, tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(MemoryFileSystem, "store", {})
    (texts / "b.jsonl").write_text('{"text": 3}\n')
    url = "memory://bucket/vectors"
    with pytest.raises(InputError, match="1 of 4 files failed"):
        embed_files(model, [str(texts)], url, settings())
    there = {key.removeprefix("/bucket/vectors/") for key in MemoryFileSystem().find("/bucket")}
    outputs = {f"{name}.npy" for name in NAMES}
    assert {name for name in there if name.endswith(".npy")} == outputs
    assert {f"{RECORDS}/{name}.json" for name in outputs} < there
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    (texts / "b.jsonl").unlink()
    with pytest.raises(ResumeError, match="has a result, and this machine has no copy"):
        embed_files(model, [str(texts)], url, settings())
    embed_files(model, [str(texts)], url, settings(), FilesSettings(shard="0/2"))
    assert embed_files(model, [str(texts)], url, settings(overwrite=True)).num_made == 1


def test_a_changed_file_is_made_again_and_other_settings_are_refused(model, texts, tmp_path):
    embed_files(model, [str(texts)], tmp_path / "out", settings())
    write_texts(texts / "a.txt", make_texts(9, 7))
    assert embed_files(model, [str(texts)], tmp_path / "out", settings()).num_made == 1
    with pytest.raises(ResumeError, match=r"other settings \(--max-length not given → 8\); name"):
        embed_files(model, [str(texts)], tmp_path / "out", settings(max_length=8))
    other = settings(max_length=8, overwrite=True)
    assert embed_files(model, [str(texts)], tmp_path / "out", other).num_made == 3
    assert embed_files(model, [str(texts)], tmp_path / "out", other).num_made == 0


def test_what_isnt_of_this_command_is_kept(model, texts, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a.txt.npy").write_bytes(b"mine")
    for _ in range(2):
        with pytest.raises(ResumeError, match=r"isn't of this command; .*1 of 3 files failed"):
            embed_files(model, [str(texts)], tmp_path / "out", settings())
    assert (tmp_path / "out" / "a.txt.npy").read_bytes() == b"mine"


def test_one_model_is_loaded_for_all_files(model, texts, tmp_path, monkeypatch):
    loaded = []
    load = Embedder.load
    monkeypatch.setattr(Embedder, "load", lambda *given: loaded.append(given) or load(*given))
    embed_files(model, [str(texts)], tmp_path / "out", settings())
    assert len(loaded) == 1


def test_inputs_that_cant_be_told_apart_are_refused(model, texts, tmp_path):
    both = [str(texts / "a.txt"), str(texts / "more" / "a.txt")]
    with pytest.raises(SettingsError, match=r"would have the same output, a\.txt; name a folder"):
        embed_files(model, both, tmp_path / "out", settings())
    with pytest.raises(SettingsError, match="standard input has no name"):
        embed_files(model, ["-"], tmp_path / "out", settings())
    with pytest.raises(SettingsError, match=r"out lies in the input"):
        embed_files(model, [str(texts)], texts / "out", settings())
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / "a.png").touch()
    with pytest.raises(InputError, match="has no file of texts"):
        embed_files(model, [str(tmp_path / "pictures")], tmp_path / "out", settings())


def test_flags_for_many_files_need_a_folder(model, texts, tmp_path, capsys):
    words = (
        f"embed {texts} --model {model} --output {tmp_path}/v.npy --workers 2 --shard 0/2".split()
    )
    assert main(words) == 2
    assert "--shard, --workers needs a folder as --output" in capsys.readouterr().err
    words = f"embed --model {model} {texts} --output {tmp_path}/out --output-format csv".split()
    assert main(words) == 2
    assert "must be one of npy, parquet, jsonl, got csv" in capsys.readouterr().err


def test_features_of_many_files_are_resumed_too(model, texts, tmp_path):
    chosen, files = FeaturesSettings(engine="torch", output_format="jsonl"), PartsSettings()
    out = tmp_path / "out"
    assert extract_files(model, [str(texts)], out, chosen, files).num_made == 3
    assert extract_files(model, [str(texts)], out, chosen, files).num_made == 0
    (out / RECORDS / "a.txt.jsonl.json").unlink()
    (out / "b.txt.jsonl").unlink()
    with pytest.raises(ResumeError, match=r"a\.txt\.jsonl exists and .*1 of 3 files failed"):
        extract_files(model, [str(texts)], out, chosen, files)
    assert (out / "b.txt.jsonl").exists()
