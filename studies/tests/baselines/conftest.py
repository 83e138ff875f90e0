"""A few shards of random letters, written once."""

from pathlib import Path

import numpy as np
import pytest
from tests.letters import letters_tokenizer

from bertkit.base.checksummed_json import write_checksummed_json
from bertkit.data.shards import (
    MANIFEST,
    PARTS,
    TOKEN_COUNTS,
    TOKENIZER_FOLDER,
    ShardRecord,
    ShardsManifest,
    SplitCounts,
    choose_dtype,
    shard_path,
)
from bertkit.data.writers import write_array

SENTENCES_PER_DOCUMENT = (3, 1, 5, 2, 4)  # of each shard


def write_shard(folder: Path, name: str, seed: int, vocab_size: int):
    """Sentences of 1 to 9 letters."""
    generator = np.random.default_rng(seed)
    documents = np.cumsum([0, *SENTENCES_PER_DOCUMENT])
    sentences = np.cumsum([0, *generator.integers(1, 10, documents[-1])])
    tokens = generator.integers(5, 31, sentences[-1]).astype(choose_dtype(vocab_size))
    arrays = (tokens, sentences.astype(np.uint64), documents.astype(np.uint64))
    files = {
        part: write_array(shard_path(folder, name, part), array)
        for part, array in zip(PARTS, arrays, strict=True)
    }
    counts = SplitCounts(
        documents=len(documents) - 1, sentences=int(documents[-1]), tokens=len(tokens)
    )
    split = "held-out" if name.startswith("held-out") else "train"
    return ShardRecord(name=name, split=split, counts=counts, files=files), tokens


@pytest.fixture(scope="session")
def shards(tmp_path_factory):
    """Two shards to learn from and one to measure."""
    folder = tmp_path_factory.mktemp("recurrent") / "shards"
    (folder / "parts").mkdir(parents=True)
    tokenizer = letters_tokenizer()
    records = tokenizer.save(folder / TOKENIZER_FOLDER)
    names = ("train-00000-000", "train-00001-000", "held-out-00000-000")
    made = [
        write_shard(folder, name, seed, tokenizer.vocab_size) for seed, name in enumerate(names)
    ]
    learned = np.concatenate([tokens for _, tokens in made[:2]])
    token_counts = np.bincount(learned, minlength=tokenizer.vocab_size).astype(np.uint64)
    manifest = ShardsManifest(
        vocab_size=tokenizer.vocab_size,
        tokenizer_fingerprint=tokenizer.fingerprint,
        tokenizer_manifest=records["tokenizer_manifest.json"],
        raw_bytes=1,
        train=made[0][0].counts + made[1][0].counts,
        held_out=made[2][0].counts,
        settings={},
        report={},
        token_counts=write_array(folder / TOKEN_COUNTS, token_counts),
        shards=[record for record, _ in made],
    )
    write_checksummed_json(folder / MANIFEST, manifest.model_dump(mode="json"))
    return folder
