"""What `scale_tables.py` measures on a CPU, in seconds of one processor."""

import tempfile
import time
import tracemalloc
from pathlib import Path
from typing import Any

import torch

from bertkit.base.checksums import record_file, verify_file
from bertkit.data.shards import MANIFEST, PARTS, ShardRecord, ShardSet, ShardsManifest, SplitCounts
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.encoder import BertEncoder
from bertkit.nn.packing import PackedBatch

NUMS_SEQUENCES = (2, 4)


def measure_blocks(models: tuple[str, ...], lengths: tuple[int, ...]) -> list[dict[str, Any]]:
    """Measure the bytes per token that a block keeps, on a CPU under autocast to bf16."""
    rows = []
    for name in models:
        config = BertConfig.preset(name, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
        for length in lengths:
            (one, more), (two, most) = (
                [count_kept_bytes(config, layers, length, size) for size in NUMS_SEQUENCES]
                for layers in (1, 2)
            )
            num_tokens = length * (NUMS_SEQUENCES[1] - NUMS_SEQUENCES[0])
            kept = ((most - two) - (more - one)) / num_tokens  # without weights and embeddings
            rows.append({"model": name, "length": length, "bytes_per_token": kept})
    return rows


def count_kept_bytes(config: BertConfig, num_layers: int, length: int, num_sequences: int) -> int:
    """Count what autograd keeps of a pass through an encoder, weights included."""
    encoder = BertEncoder(config.model_copy(update={"num_hidden_layers": num_layers}))
    batch = PackedBatch.from_single([[1] * length] * num_sequences)
    kept: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with (
        torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor),
        torch.autocast("cpu", dtype=torch.bfloat16),
    ):
        held = encoder(batch)  # until all is counted, so that no memory is used twice
    del held
    return sum(kept.values())


def measure_shards(folder: Path) -> dict[str, int]:
    manifest = ShardSet.open(folder).manifest
    files = [file for shard in manifest.shards for file in shard.files.values()]
    return {
        "text_bytes": manifest.raw_bytes,
        "tokens": manifest.train.tokens + manifest.held_out.tokens,
        "bytes": sum(file.size_bytes for file in files),
    }


def measure_manifest(folder: Path, num_shards: int) -> dict[str, float]:
    """Write a manifest of so many shards of 16 MiB of text, and read it."""
    manifest = ShardSet.open(folder).manifest
    shard = max(manifest.shards, key=lambda each: each.counts.tokens)
    scale = (4 << 20) / shard.counts.tokens
    files = {
        part: file.model_copy(
            update={"chunk_crc32": file.chunk_crc32[: max(1, round(scale * len(file.chunk_crc32)))]}
        )
        for part, file in shard.files.items()
    }
    counts = SplitCounts(documents=1, sentences=2, tokens=3)
    shards = [
        ShardRecord(name=f"train-{number:05d}-000", split="train", counts=counts, files=files)
        for number in range(num_shards)
    ]
    total = SplitCounts(documents=num_shards, sentences=2 * num_shards, tokens=3 * num_shards)
    update = {"shards": shards, "train": total, "held_out": SplitCounts()}
    with tempfile.TemporaryDirectory() as other:
        path = Path(other) / MANIFEST
        manifest.model_copy(update=update).save(path)
        started = time.process_time()
        ShardsManifest.load(path)
        seconds = time.process_time() - started
        tracemalloc.start()
        read = ShardsManifest.load(path)
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert len(read.shards) == num_shards
        size = path.stat().st_size
    return {"shards": num_shards, "bytes": size, "seconds": seconds, "memory_bytes": held}


def measure_opening(folder: Path) -> dict[str, float]:
    times = []
    for _ in range(3):
        started = time.process_time()
        opened = ShardSet.open(folder)
        times.append(time.process_time() - started)
    return {"files": len(PARTS) * len(opened.manifest.shards), "seconds": min(times)}


def measure_verifying(num_bytes: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(bytes(num_bytes))
        record = record_file(path)
        started = time.process_time()
        verify_file(path, record)
        return {"bytes_per_second": num_bytes / (time.process_time() - started)}
