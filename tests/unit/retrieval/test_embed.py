"""Row n of the output is text n, in every form; what ended early goes on to the same bytes."""

import errno
import gzip
import io
import json
import os
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.closeness import assert_close
from tests.unit.retrieval.small_embedding import (
    NUM_TEXTS,
    NUM_WINDOWS,
    WINDOW_TEXTS,
    contents,
    load,
    make_texts,
    settings,
    use_engine,
    use_small_windows,
    write_texts,
)

from bertkit.base import storage
from bertkit.base.checksummed_json import read_checksummed_json, write_checksummed_json
from bertkit.base.errors import (
    DamagedFileError,
    InputError,
    NonFiniteError,
    ResumeError,
    SettingsError,
    StoppedError,
    StorageError,
)
from bertkit.base.output import open_output
from bertkit.data.tables.text_files import TextFiles, open_text_files
from bertkit.data.tables.texts import TextTable
from bertkit.inference.pipeline import Window
from bertkit.retrieval.embed import EmbedResult, embed, embed_lines
from bertkit.retrieval.unfinished_vectors import (
    VECTOR_WRITERS,
    format_rows,
    read_record,
    record_path,
    rows_path,
)
from bertkit.retrieval.vector_file import read_manifest

FORMS = list(VECTOR_WRITERS)


@pytest.fixture(scope="module")
def embedder(model):
    return load(model)


@pytest.fixture
def source(tmp_path):
    (tmp_path / "in").mkdir()
    return write_texts(tmp_path / "in" / "texts.txt", make_texts())


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    use_small_windows(monkeypatch)
    monkeypatch.setattr(storage, "sync", lambda descriptor: None)  # nothing here cuts the power
    monkeypatch.setattr(storage, "sync_folder", lambda path: None)


def read_rows(output: Path) -> np.ndarray:
    if output.suffix == ".npy":
        return np.load(output, mmap_mode="r")
    if output.suffix == ".parquet":
        table = pq.read_table(output)
        assert table["row"].to_pylist() == list(range(len(table)))
        vectors = table["embedding"].combine_chunks()
        return vectors.flatten().to_numpy().reshape(-1, vectors.type.list_size)
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert [row["row"] for row in rows] == list(range(len(rows)))
    return np.array([row["embedding"] for row in rows], dtype=np.float32)


def embed_alone(embedder, source: Path, output: Path) -> EmbedResult:
    """A run that nothing disturbs, and whose engine counts."""
    with pytest.MonkeyPatch.context() as patches:
        use_engine(patches, embedder)
        return embed("model", source, output, settings())


def interrupt() -> None:
    raise KeyboardInterrupt


def begin(embedder, source: Path, output: Path, window: int = 3, **choices: Any) -> None:
    """Stop a job before a window, by default the third."""
    with pytest.MonkeyPatch.context() as patches:
        use_engine(patches, embedder, window, interrupt)
        with pytest.raises(StoppedError):
            embed("model", source, output, settings(**choices))


@pytest.mark.parametrize("form", FORMS)
def test_each_form_has_the_vectors_of_the_texts(embedder, source, tmp_path, form, monkeypatch):
    use_engine(monkeypatch, embedder)
    output = tmp_path / "out" / f"vectors{form}"
    result = embed("model", source, output, settings())
    expected = np.stack(list(embedder.stream(make_texts())))
    np.testing.assert_array_equal(read_rows(output), expected)
    assert contents(output.parent).keys() == {output.name, f"{output.name}.json"}
    assert (result.num_rows, result.dimension, result.engine) == (NUM_TEXTS, 8, "torch")
    assert (result.was_done, result.num_resumed) == (False, 0)
    assert result.tokens_per_second > 0
    manifest = read_manifest(output)
    assert manifest.beginning.embedding == embedder.identity
    assert manifest.beginning.input == open_text_files(source).identity()
    assert (manifest.num_rows, manifest.dimension) == (NUM_TEXTS, 8)
    assert manifest.counts["texts"] == NUM_TEXTS
    assert manifest.counts["truncated"] == 1
    assert manifest.counts["unknown_only"] >= 1
    assert manifest.counts["empty"] == sum(not text.strip() for text in make_texts())
    assert manifest.describes(output)
    if form == ".npy":
        np.save(buffer := io.BytesIO(), expected)
        assert output.read_bytes() == buffer.getvalue()
    if form == ".parquet":
        assert json.loads(pq.read_schema(output).metadata[b"bertkit"]) == embedder.identity


@pytest.mark.parametrize("form", [".parquet", ".jsonl"])
def test_rows_of_a_folder_have_their_file_and_those_with_ids_their_id(embedder, tmp_path, form):
    folder = tmp_path / "notes"
    folder.mkdir()
    write_texts(folder / "b.txt", ["cat", "", "dog"])
    (folder / "a.csv").write_text("key,text\nx,hat\n")
    output = tmp_path / f"vectors{form}"
    embed_alone(embedder, folder, output)
    assert read_ids(output) == ["notes/a.csv:1", *(f"notes/b.txt:{n}" for n in (1, 2, 3))]
    np.testing.assert_array_equal(
        read_rows(output), np.stack(list(embedder.stream(["hat", "cat", "", "dog"])))
    )
    with pytest.MonkeyPatch.context() as patches:
        use_engine(patches, embedder)
        with pytest.raises(SettingsError, match="exists and differs"):
            embed("model", [folder / "a.csv"], output, settings())
        chosen = settings(id_column="key", overwrite=True)
        embed("model", folder / "a.csv", output, chosen)
        assert read_ids(output) == ["x"]
        with pytest.raises(SettingsError, match=r"has no room for ids; write \.parquet or \.jsonl"):
            embed("model", folder / "a.csv", tmp_path / "vectors.npy", chosen)
        with pytest.raises(SettingsError, match=r"lies in the input"):
            embed("model", folder, folder / f"vectors{form}", settings())


@pytest.mark.parametrize("form", [".parquet", ".jsonl"])
@pytest.mark.parametrize("is_stopped", [False, True])
def test_ids_travel_with_texts_that_are_read_once(
    embedder, tmp_path, form, is_stopped, monkeypatch
):
    source, output = tmp_path / "in.jsonl", tmp_path / f"vectors{form}"
    ids = [f"{number}\n\N{SNOWMAN}" for number in range(NUM_TEXTS)]
    rows = [{"text": text, "key": key} for text, key in zip(make_texts(), ids, strict=True)]
    source.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    if is_stopped:
        begin(embedder, source, output, id_column="key")
    use_engine(monkeypatch, embedder)
    read, read_table = [], TextTable.rows
    monkeypatch.setattr(
        TextTable, "rows", lambda table: read.append(table.name) or read_table(table)
    )
    result = embed("model", source, output, settings(id_column="key"))
    assert result.num_resumed == (2 * WINDOW_TEXTS if is_stopped else 0)
    assert read == [str(source)]
    assert read_ids(output) == ids
    assert contents(tmp_path).keys() == {"in.jsonl", output.name, f"{output.name}.json"}


def read_ids(output: Path) -> list[str]:
    if output.suffix == ".parquet":
        return pq.read_table(output)["id"].to_pylist()
    return [json.loads(line)["id"] for line in output.read_text().splitlines()]


@pytest.mark.parametrize("form", FORMS)
def test_no_texts_are_no_rows(embedder, tmp_path, form):
    source = write_texts(tmp_path / "empty.txt", [])
    result = embed_alone(embedder, source, tmp_path / f"vectors{form}")
    assert (result.num_rows, result.counts.texts) == (0, 0)
    rows = read_rows(tmp_path / f"vectors{form}")
    assert rows.shape == ((0,) if form == ".jsonl" else (0, 8))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("window", [1, 5, NUM_WINDOWS])
def test_work_that_was_stopped_goes_on_to_the_same_bytes(
    embedder, source, tmp_path, form, window, monkeypatch, capsys
):
    output = tmp_path / "out" / f"vectors{form}"
    embed_alone(embedder, source, tmp_path / "whole" / output.name)
    use_engine(monkeypatch, embedder, window, interrupt)
    num_safe = (window - 1) * WINDOW_TEXTS
    with pytest.raises(StoppedError, match=rf"stopped with {num_safe} rows of .* saved; the same"):
        embed("model", source, output, settings())
    assert not output.exists()
    engine = use_engine(monkeypatch, embedder)
    result = embed("model", source, output, settings())
    assert engine.num_batches == NUM_WINDOWS - window + 1
    assert result.num_resumed == num_safe
    assert result.counts.texts == NUM_TEXTS
    assert contents(output.parent) == contents(tmp_path / "whole")
    assert ("Resuming" in capsys.readouterr().err) == (window > 1)


@pytest.mark.parametrize("form", FORMS)
def test_a_full_disk_loses_no_rows_that_were_saved(embedder, source, tmp_path, form, monkeypatch):
    """One without room for more rows, or for the form that they are written in at the end."""
    output = tmp_path / "out" / f"vectors{form}"
    embed_alone(embedder, source, tmp_path / "whole" / output.name)
    write, open_new = storage.write, storage.open_new
    opened: list[int] = []  # of the second form
    num_left = [30]  # writes of all files, where there is no second form

    def note(path: Path) -> int:
        number = open_new(path)
        opened.extend([number] if path.name == f"{output.name}.partial" else [])
        return number

    def fill(descriptor: int, data: memoryview) -> int:
        num_left[0] -= form == ".npy"
        if descriptor in opened or num_left[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data[: len(data) // 2 + 1])

    with monkeypatch.context() as patches:
        patches.setattr(storage, "open_new", note)
        patches.setattr(storage, "write", fill)
        use_engine(patches, embedder)
        advice = "; fix that, and the same" if form == ".npy" else "$"
        with pytest.raises(StorageError, match=rf"No space left on device{advice}"):
            embed("model", source, output, settings())
    result = embed_alone(embedder, source, output)
    assert 0 < result.num_resumed <= NUM_TEXTS
    assert (result.num_resumed < NUM_TEXTS) == (form == ".npy")
    assert contents(output.parent) == contents(tmp_path / "whole")


def test_work_of_something_else_is_not_gone_on_with(model, embedder, source, tmp_path, monkeypatch):
    output = tmp_path / "vectors.npy"
    begin(embedder, source, output)
    begun = rf"{output.name}\.unfinished was started with other input or settings"
    with pytest.raises(ResumeError, match=rf'{begun} \(vector: "mean" → "cls"\); use those again'):
        embed(model, source, output, settings(pooling=("cls",)))
    changed = source.stat().st_mtime_ns
    source.write_bytes(source.read_bytes() + b"more\n")
    with pytest.raises(ResumeError, match=rf"{begun} \(changed_ns: .* size_bytes: .*--overwrite"):
        embed(model, source, output, settings())
    source.write_bytes(source.read_bytes()[:-5])
    os.utime(source, ns=(changed, changed))
    assert embed(model, source, output, settings()).num_resumed == 2 * WINDOW_TEXTS


def test_work_goes_on_in_the_precision_that_it_was_begun_in(model, source, tmp_path, capsys):
    output = tmp_path / "vectors.npy"
    begin(load(model, precision="bf16"), source, output, precision="bf16")
    with pytest.raises(ResumeError, match='precision: "bf16" → "fp32"'):
        embed(model, source, output, settings(precision="fp32"))
    result = embed(model, source, output, settings())
    assert (result.precision, result.num_resumed) == ("bf16", 2 * WINDOW_TEXTS)
    assert f"{output} after 16 rows, in bf16 as it was begun" in capsys.readouterr().err
    whole = load(model, precision="bf16").stream(make_texts())
    np.testing.assert_array_equal(np.load(output), np.stack(list(whole)))
    assert embed(model, source, output, settings()).was_done
    with pytest.raises(SettingsError, match='precision: "bf16" → "fp32"'):
        embed(model, source, output, settings(precision="fp32"))


def test_work_goes_on_in_another_engine(model, source, tmp_path):
    output = tmp_path / "vectors.npy"
    begin(load(model, precision="fp32"), source, output)
    state = read_record(output)
    older = {**state.beginning.embedding, "engine": "torch"}  # as earlier versions recorded it
    beginning = state.beginning.model_copy(update={"embedding": older})
    state.model_copy(update={"beginning": beginning}).save(record_path(output))
    result = embed(model, source, output, settings(engine="openvino"))
    assert (result.engine, result.num_resumed) == ("openvino", 2 * WINDOW_TEXTS)
    assert embed(model, source, output, settings()).was_done


def test_overwriting_drops_other_work_and_resumes_the_same(model, embedder, source, tmp_path):
    output = tmp_path / "vectors.npy"
    begin(embedder, source, output)
    chosen = settings(pooling=("cls",), overwrite=True)
    result = embed(model, source, output, chosen)
    assert (result.num_resumed, result.was_done) == (0, False)
    assert_close(np.load(output), load(model, pooling=("cls",))(make_texts()))
    assert embed(model, source, output, chosen).was_done
    begin(embedder, source, output, overwrite=True)
    resumed = embed(model, source, output, settings(overwrite=True))
    assert resumed.num_resumed == 2 * WINDOW_TEXTS


def test_an_output_that_is_done_is_left_and_another_is_not_replaced(
    model, embedder, source, tmp_path, monkeypatch
):
    output, other = tmp_path / "vectors.npy", load(model, pooling=("cls",))
    first = embed_alone(embedder, source, output)
    before = output.stat().st_mtime_ns
    engine = use_engine(monkeypatch, embedder)
    again = embed("model", source, output, settings())
    assert (again.was_done, again.counts, again.num_rows) == (True, first.counts, NUM_TEXTS)
    assert (engine.num_batches, output.stat().st_mtime_ns) == (0, before)
    use_engine(monkeypatch, other)
    with pytest.raises(
        SettingsError, match=r'exists and differs from what would .* \(vector: "mean"'
    ):
        embed(model, source, output, settings(pooling=("cls",)))
    assert embed(model, source, output, settings(pooling=("cls",), overwrite=True)).num_rows
    assert read_manifest(output).beginning.embedding["vector"] == "cls"
    output.write_bytes(b"mine")
    with pytest.raises(SettingsError, match="it has no matching manifest"):
        embed(model, source, output, settings(pooling=("cls",)))
    assert output.read_bytes() == b"mine"


def test_what_stands_where_the_manifest_should_is_not_lost(embedder, source, tmp_path, monkeypatch):
    output, other = tmp_path / "vectors.npy", tmp_path / "vectors.npy.json"
    use_engine(monkeypatch, embedder)
    other.write_text("{}")
    with pytest.raises(DamagedFileError, match=r"vectors\.npy\.json doesn't end with its SHA-256"):
        embed("model", source, output, settings())
    embed("model", source, output, settings(overwrite=True))
    write_checksummed_json(other, {"a": 1})
    with pytest.raises(DamagedFileError, match=r"isn't the manifest of a file of vectors: beginn"):
        embed("model", source, output, settings())


@pytest.mark.parametrize("harm", ["rows", "short", "gone", "record", "other", "counts"])
def test_rows_that_were_altered_are_not_gone_on_with(embedder, source, tmp_path, harm, monkeypatch):
    output = tmp_path / "vectors.npy"
    begin(embedder, source, output)
    rows, record = rows_path(output), record_path(output)
    data = bytearray(rows.read_bytes())
    data[200] ^= 1
    if harm in {"rows", "short"}:
        rows.write_bytes(data if harm == "rows" else data[:300])
    elif harm == "gone":
        rows.unlink()
    elif harm == "counts":  # as a later bertkit may write them
        content = read_checksummed_json(record)
        write_checksummed_json(record, content | {"counts": content["counts"] | {"later": 1}})
    else:
        record.write_text(record.read_text().replace("16,", "24,") if harm == "record" else "{}")
    match = {
        "rows": r"vectors\.npy\.unfinished was altered; start over with --overwrite",
        "short": r"vectors\.npy\.unfinished ends too early; start over with --overwrite",
        "gone": r"vectors\.npy\.unfinished is missing; start over with --overwrite",
        "counts": r"unfinished\.json isn't a progress record: counts: .*--overwrite",
    }.get(harm, r"unfinished\.json .*SHA-256.*; start over with --overwrite")
    use_engine(monkeypatch, embedder)
    with pytest.raises(DamagedFileError, match=match):
        embed("model", source, output, settings())
    assert embed("model", source, output, settings(overwrite=True)).num_rows == NUM_TEXTS


def test_one_process_at_a_time(embedder, source, tmp_path, monkeypatch):
    use_engine(monkeypatch, embedder)
    output = tmp_path / "vectors.npy"
    with (
        open_output(output, "writing"),
        pytest.raises(ResumeError, match=r"another process is writing .*vectors\.npy; wait for it"),
    ):
        embed("model", source, output, settings())


def test_standard_input_is_read_once(embedder, tmp_path, monkeypatch):
    output = tmp_path / "vectors.npy"

    def give(texts: list[str]) -> None:
        data = "".join(f"{text}\n" for text in texts).encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    give(make_texts())
    use_engine(monkeypatch, embedder, 3, interrupt)
    with pytest.raises(
        StoppedError, match="stopped; standard input can't be read again, so the job"
    ):
        embed("model", "-", output, settings())
    assert contents(tmp_path) == {}
    give(make_texts())
    use_engine(monkeypatch, embedder)
    assert embed("model", "-", output, settings()).num_rows == NUM_TEXTS
    give(make_texts())
    with pytest.raises(SettingsError, match="input: standard input or a pipe can't be read"):
        embed("model", "-", output, settings())
    assert contents(tmp_path).keys() == {"vectors.npy", "vectors.npy.json"}
    give(["key,text", "x,a cat", "y,a hat"])
    with_ids = tmp_path / "vectors.jsonl"
    embed("model", "-", with_ids, settings(format="csv", id_column="key"))
    assert read_ids(with_ids) == ["x", "y"]


def test_a_full_disk_under_standard_input_promises_nothing(embedder, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\n")))
    use_engine(monkeypatch, embedder)

    def fill(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(storage, "write", fill)
    with pytest.raises(StorageError, match=r"No space left on device$"):
        embed("model", "-", tmp_path / "vectors.npy", settings())


def test_vectors_that_are_not_finite_are_refused(embedder, source, tmp_path, monkeypatch):
    use_engine(monkeypatch, embedder)

    def stream(_: object, texts: Iterable[object], __: object) -> Iterator[Window]:
        texts = iter(texts)
        for number in range(2):
            rows = np.ones((len(list(islice(texts, WINDOW_TEXTS))), 8), np.float32)
            rows[3, 2] = np.nan if number else 1
            yield Window(None, rows)

    monkeypatch.setattr(type(embedder), "stream_windows", stream)
    lines: list[str] = []
    with pytest.raises(NonFiniteError, match="of row 12 has NaN or infinity; try --precision"):
        embed_lines(embedder, open_text_files(source), lines.append)
    assert len(lines) == WINDOW_TEXTS
    with pytest.raises(NonFiniteError, match="of row 12 has NaN or infinity; try --precision"):
        embed("model", source, tmp_path / "vectors.npy", settings())


def test_an_input_that_changes_meanwhile_is_noticed(embedder, source, tmp_path, monkeypatch):
    def grow() -> None:
        with source.open("a") as stream:
            stream.write("more\n")

    use_engine(monkeypatch, embedder, NUM_WINDOWS, grow)
    with pytest.raises(ResumeError, match=r"texts\.txt changed while it was read; start over"):
        embed("model", source, tmp_path / "vectors.npy", settings())


def test_an_input_that_became_shorter_is_noticed(embedder, source, tmp_path, monkeypatch):
    begin(embedder, source, tmp_path / "vectors.npy", NUM_WINDOWS)
    use_engine(monkeypatch, embedder)

    read = TextFiles.rows
    monkeypatch.setattr(TextFiles, "rows", lambda files: islice(read(files), 5))
    with pytest.raises(InputError, match=r"has 5 rows, and 56 were done before; start over"):
        embed("model", source, tmp_path / "vectors.npy", settings())


def test_outputs_that_can_not_be_are_refused(embedder, source, tmp_path, monkeypatch):
    use_engine(monkeypatch, embedder)
    with pytest.raises(SettingsError, match=r"vectors\.bin must end with \.npy or \.parquet"):
        embed("model", source, tmp_path / "vectors.bin", settings())
    lines = source.rename(source.with_suffix(".jsonl"))
    content = lines.read_bytes()
    with pytest.raises(SettingsError, match=r"texts\.jsonl is the input, and would be overwritten"):
        embed("model", lines, lines, settings(overwrite=True))
    for name in ("v.npy.json", "v.npy.unfinished", "v.npy.unfinished.json"):
        beside = lines.rename(lines.with_name(name))
        with pytest.raises(SettingsError, match=rf"{name} is the input, and would be overwritten"):
            embed("model", beside, beside.with_name("v.npy"), settings(format="text"))
        assert beside.read_bytes() == content
        beside.rename(lines)
    with pytest.raises(StorageError, match="can't be written: File name too long"):
        embed("model", lines, tmp_path / f"{'x' * 245}.npy", settings())
    (tmp_path / "folder.npy").mkdir()
    with pytest.raises(SettingsError, match=r"folder\.npy isn't a file; name another --output"):
        embed("model", lines, tmp_path / "folder.npy", settings())


def test_lines_are_handed_over_as_they_come(embedder, source, tmp_path):
    lines: list[str] = []
    result = embed_lines(embedder, open_text_files(source), lines.append)
    embed_alone(embedder, source, tmp_path / "vectors.jsonl")
    assert (tmp_path / "vectors.jsonl").read_text() == "".join(f"{line}\n" for line in lines)
    assert (result.output, result.num_rows, result.counts.texts) == (None, NUM_TEXTS, NUM_TEXTS)


def test_each_number_of_a_line_is_short_and_exact():
    bits = np.random.default_rng(0).integers(0, 2**32, 1 << 14, dtype=np.uint32)
    rows = bits.view(np.float32)
    rows = rows[np.isfinite(rows)][:16000].reshape(-1, 8)
    lines = list(format_rows(rows, 5))
    found = [json.loads(line) for line in lines]
    assert [row["row"] for row in found] == list(range(5, 5 + len(rows)))
    again = np.array([row["embedding"] for row in found]).astype(np.float32)
    np.testing.assert_array_equal(again.view(np.uint32), rows.view(np.uint32))
    assert list(format_rows(np.array([[0.1, -2.5]], np.float32), 0)) == [
        '{"row": 0, "embedding": [0.1, -2.5]}'
    ]


def test_deterministic_rows_of_packed_texts_do_not_depend_on_where_it_was_stopped(
    model, source, tmp_path
):
    packed = source.with_suffix(".txt.gz")
    packed.write_bytes(gzip.compress(source.read_bytes()))
    embedder = load(model, deterministic=True)
    embed_alone(embedder, source, tmp_path / "whole.npy")
    begin(embedder, packed, tmp_path / "vectors.npy", 20)  # a text by itself is a batch
    assert embed_alone(embedder, packed, tmp_path / "vectors.npy").num_resumed == 2 * WINDOW_TEXTS
    assert (tmp_path / "vectors.npy").read_bytes() == (tmp_path / "whole.npy").read_bytes()
    np.testing.assert_array_equal(np.load(tmp_path / "whole.npy"), embedder(make_texts()))
