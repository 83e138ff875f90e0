"""Shards give back what was written, or name the file that is damaged."""

from pathlib import Path

import numpy as np
import pytest

from bertkit.base.checksummed_json import read_checksummed_json, write_checksummed_json
from bertkit.base.checksums import CHUNK_BYTES, HEAD_BYTES
from bertkit.base.errors import DamagedFileError, MissingFileError
from bertkit.data.shards import (
    MANIFEST,
    PARTS,
    PLAN,
    TOKEN_COUNTS,
    TOKENIZER_FOLDER,
    ShardRecord,
    ShardSet,
    ShardsManifest,
    SplitCounts,
    choose_dtype,
    shard_path,
)
from bertkit.data.writers import write_array
from bertkit.tokenization.engine import SPECIAL_TOKENS
from bertkit.tokenization.tokenizer import Tokenizer

TOKENS_PER_SHARD = 3 * CHUNK_BYTES // 2  # three mebibytes of two-byte tokens, and the header


def write_shard(folder: Path, name: str, seed: int) -> ShardRecord:
    rng = np.random.default_rng(seed)
    tokens = rng.integers(0, 30_000, TOKENS_PER_SHARD).astype(np.uint16)
    arrays = {
        "tokens": tokens,
        "sentences": np.arange(0, len(tokens) + 1, 4).astype(np.uint64),
        "documents": np.arange(0, len(tokens) // 4 + 1, 16).astype(np.uint64),
    }
    files = {part: write_array(shard_path(folder, name, part), arrays[part]) for part in PARTS}
    counts = SplitCounts(
        documents=len(arrays["documents"]) - 1,
        sentences=len(arrays["sentences"]) - 1,
        tokens=len(tokens),
    )
    split = "held-out" if name.startswith("held-out") else "train"
    return ShardRecord(name=name, split=split, counts=counts, files=files)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "parts").mkdir()
    names = ["train-00000-000", "train-00001-000", "held-out-00000-000"]
    shards = [write_shard(tmp_path, name, seed) for seed, name in enumerate(names)]
    tokenizer = Tokenizer([*SPECIAL_TOKENS, *(f"x{number}" for number in range(29_995))])
    records = tokenizer.save(tmp_path / TOKENIZER_FOLDER)
    token_counts = np.zeros(30_000, dtype=np.uint64)
    token_counts[-1] = 2 * TOKENS_PER_SHARD
    manifest = ShardsManifest(
        vocab_size=30_000,
        tokenizer_fingerprint=tokenizer.fingerprint,
        tokenizer_manifest=records["tokenizer_manifest.json"],
        raw_bytes=1,
        train=shards[0].counts + shards[1].counts,
        held_out=shards[2].counts,
        settings={},
        report={},
        token_counts=write_array(tmp_path / TOKEN_COUNTS, token_counts),
        shards=shards,
    )
    write_checksummed_json(tmp_path / MANIFEST, manifest.model_dump(mode="json"))
    return tmp_path


def flip(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


def touch(shards: ShardSet) -> None:
    for shard in (*shards.train, *shards.held_out):
        shard.tokens(0, shard.num_tokens)
        _ = shard.sentence_offsets, shard.document_offsets


def test_what_was_written_is_read(folder):
    shards = ShardSet.open(folder)
    assert [shard.name for shard in shards.train] == ["train-00000-000", "train-00001-000"]
    assert [shard.name for shard in shards.held_out] == ["held-out-00000-000"]
    shard = shards.train[1]
    expected = np.random.default_rng(1).integers(0, 30_000, TOKENS_PER_SHARD)
    np.testing.assert_array_equal(shard.tokens(0, shard.num_tokens), expected)
    np.testing.assert_array_equal(shard.tokens(17, 40), expected[17:40])
    assert shard.tokens(0, 1).dtype == np.uint16
    assert shard.sentence_offsets[-1] == shard.num_tokens
    assert shard.document_offsets[-1] == shard.num_sentences
    assert len(shard.document_offsets) - 1 == shard.record.counts.documents
    assert shards.token_counts[-1] == 2 * TOKENS_PER_SHARD
    assert not shard.tokens(0, 5).flags.writeable


def test_only_what_is_touched_is_verified(folder):
    flip(shard_path(folder, "train-00001-000", "tokens"), CHUNK_BYTES + 5)
    shard = ShardSet.open(folder).train[1]
    in_first, in_third = CHUNK_BYTES // 2 - 100, CHUNK_BYTES + 1000
    assert len(shard.tokens(0, in_first)) == in_first
    assert len(shard.tokens(in_third, in_third + 5)) == 5
    message = r"tokens\.npy is damaged between bytes 1,048,576 and 2,097,152"
    for _ in range(2):  # damage isn't forgotten once it was met
        with pytest.raises(DamagedFileError, match=message):
            shard.tokens(in_first, in_first + 200)


@pytest.mark.parametrize("part", PARTS)
def test_opening_reads_the_first_4_kib_and_no_more(folder, part):
    path = shard_path(folder, "train-00001-000", part)
    flip(path, HEAD_BYTES)
    shards = ShardSet.open(folder)
    with pytest.raises(DamagedFileError, match=r"damaged between bytes 0 and 1,048,576"):
        touch(shards)
    with pytest.raises(DamagedFileError, match=f"{path.name} is damaged between bytes"):
        ShardSet.open(folder, verify="all")
    flip(path, HEAD_BYTES - 1)
    with pytest.raises(DamagedFileError, match=r"damaged between bytes 0 and 4,096"):
        ShardSet.open(folder)


def test_an_altered_copy_of_the_tokenizer_is_not_used(folder):
    assert ShardSet.open(folder, verify="all").load_tokenizer().vocab_size == 30_000
    path = folder / TOKENIZER_FOLDER / "tokenizer_config.json"
    path.write_text(path.read_text().replace('"do_lower_case": true', '"do_lower_case": null'))
    for verify in ("touched", "all"):
        with pytest.raises(DamagedFileError, match=r"tokenizer_config\.json is damaged"):
            ShardSet.open(folder, verify=verify).load_tokenizer()


def test_a_file_of_another_kind_is_refused(folder):
    path = folder / "parts" / "train-00000-000.tokens.npy"
    record = write_array(path, np.zeros((4, 4), dtype=np.uint16))
    manifest = read_checksummed_json(folder / MANIFEST)
    manifest["shards"][0]["files"]["tokens"] = record.model_dump()
    write_checksummed_json(folder / MANIFEST, manifest)
    with pytest.raises(DamagedFileError, match="one row of unsigned numbers"):
        ShardSet.open(folder).train[0].tokens(0, 1)


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("files",), {}, "shards.0.files: expected tokens, sentences, documents, got none"),
        (("name",), "../../other/parts/train-00000-000", "shards.0.name must match"),
        (("name",), "train-00000-000\n", "shards.0.name must match"),
        (("counts", "tokens"), -5, "shards.0.counts.tokens must be at least"),
        (("counts", "tokens"), 7, "npy counts 3,145,728 tokens, and the shards hold 1,572,871;"),
        (("counts", "sentences"), 7, "sentences.npy holds 393,217 numbers and should hold 8;"),
        (("counts", "documents"), 7, "documents.npy holds 24,577 numbers and should hold 8;"),
        (("files", "tokens", "chunk_crc32"), [], r"tokens\.npy has 0 checksums and should have 4"),
        (("name",), "train-00001-000", "two shards have the same name"),
        (("split",), "held-out", "train-00000-000 can't be of the split held-out"),
    ],
)
def test_the_manifest_isnt_trusted(folder, place, value, message):
    manifest = read_checksummed_json(folder / MANIFEST)
    *above, last = place
    record = manifest["shards"][0]
    for key in above:
        record = record[key]
    if "counts" in above:
        manifest["train"][last] += value - record[last]
    record[last] = value
    write_checksummed_json(folder / MANIFEST, manifest)
    with pytest.raises(DamagedFileError, match=message) as caught:
        touch(ShardSet.open(folder))
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("split", ["train", "held_out"])
@pytest.mark.parametrize("part", ["tokens", "sentences", "documents"])
def test_totals_that_arent_those_of_the_shards_are_refused(folder, split, part):
    manifest = read_checksummed_json(folder / MANIFEST)
    manifest[split][part] += 1
    write_checksummed_json(folder / MANIFEST, manifest)
    with pytest.raises(DamagedFileError, match=f"{split.replace('_', '-')} should hold"):
        ShardSet.open(folder)


def test_few_files_are_mapped_at_a_time(folder):
    shards = [ShardSet.open(folder) for _ in range(35)]
    for each in shards:
        touch(each)
    maps = Path("/proc/self/maps")
    if maps.exists():
        mapped = [line for line in maps.read_text().splitlines() if str(folder) in line]
        assert 0 < len(mapped) <= 256  # other tests may still hold maps of their own


def test_a_folder_without_shards_and_an_unfinished_one_are_told_apart(folder):
    (folder / MANIFEST).rename(folder / "other.json")
    with pytest.raises(MissingFileError, match="has no shards"):
        ShardSet.open(folder)
    (folder / PLAN).write_text("{}")
    with pytest.raises(MissingFileError, match="isn't finished; run the same"):
        ShardSet.open(folder)
    (folder / MANIFEST).write_text('{"format_version": 1}')
    with pytest.raises(DamagedFileError, match="written by an older bertkit"):
        ShardSet.open(folder)
    write_checksummed_json(folder / MANIFEST, {"format_version": 3})
    with pytest.raises(DamagedFileError, match="manifest of shards: format_version must be"):
        ShardSet.open(folder)


@pytest.mark.parametrize(
    ("vocab_size", "expected"),
    [(6, "u1"), (256, "u1"), (257, "u2"), (65_536, "u2"), (65_537, "u4")],
)
def test_the_smallest_type_that_holds_the_vocabulary(vocab_size, expected):
    assert choose_dtype(vocab_size) == np.dtype(expected)
