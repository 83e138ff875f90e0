"""Peak memory of `bertkit embed` at more and more texts: it must not grow with their number.

    python benchmarks/bench_stream_memory.py --nums-texts 1000 100000 1000000

The texts are generated sentences of up to a dozen words, the model is a tiny one with random
weights and a vocabulary trained on them, so that a million texts take minutes; what is measured is
all that stands around the model. The command runs as a user runs it; its peak is what the system
says that the process has held at most. The other forms are written at the middle size. Linux only.
"""

import tempfile
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench_memory import check_system, watch
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.encoder import BertModel
from bertkit.tokenization.tokenizer import Tokenizer
from generated_corpus import draw_sentences
from program import build_parser, write_figures

FORMS = ("npy", "parquet", "jsonl")
LONGEST_TEXT_WORDS = 12
VOCABULARY_TEXTS, VOCABULARY_SIZE = 20_000, 4000
SIZES: dict[str, Any] = {
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 64,
    "max_position_embeddings": 64,
}


def main() -> None:
    """Print a table, and write the figures as JSON."""
    parser = build_parser(__doc__, "stream_memory.json", data=None)
    parser.add_argument("--nums-texts", type=int, nargs="+", default=[1000, 100_000, 1_000_000])
    parser.add_argument("--forms", nargs="+", default=FORMS, help="of the middle size")
    parser.add_argument("--engines", nargs="+", default=["torch"])
    arguments = parser.parse_args()
    check_system()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_texts(folder / "vocabulary.txt", VOCABULARY_TEXTS)
        make_model(folder / "model", folder / "vocabulary.txt", folder / "tokenizer")
        rows = list(measure(folder, arguments.nums_texts, arguments.engines, arguments.forms))
    versions = {name: version(name) for name in ("numpy", "pyarrow", "tokenizers")}
    write_figures(arguments.output, versions, rows=rows)


def measure(
    folder: Path, nums_texts: Sequence[int], engines: Sequence[str], forms: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """A row for each number of texts, engine and form."""
    middle = sorted(nums_texts)[len(nums_texts) // 2]
    for num_texts in nums_texts:
        texts = folder / f"{num_texts}.txt"
        write_texts(texts, num_texts)
        for engine in engines:
            for form in forms if num_texts == middle else FORMS[:1]:
                yield measure_form(folder / "model", texts, num_texts, engine, form)
        texts.unlink()


def measure_form(
    model: Path, texts: Path, num_texts: int, engine: str, form: str
) -> dict[str, Any]:
    """Embed a file once."""
    output = texts.with_suffix(f".{engine}.{form}")
    words = ["embed", str(model), str(texts), "--output", str(output), "--engine", engine]
    words += ["--precision", "fp32", "--pooling", "mean"]
    row = {
        "num_texts": num_texts,
        "engine": engine,
        "form": form,
        "input_bytes": texts.stat().st_size,
        **watch("bertkit", words),
        "output_bytes": output.stat().st_size,
    }
    output.unlink()
    print(
        f"{num_texts:>10,} texts ({row['input_bytes'] / 1e6:6.1f} MB) → .{form:<8}"
        f"({row['output_bytes'] / 1e6:6.1f} MB), {engine}: {row['peak_bytes'] / 1e6:6.0f} MB at"
        f" most, {row['seconds']:,.0f} s",
        flush=True,
    )
    return row


def write_texts(path: Path, num_texts: int) -> None:
    """A text a line, the same for the same number."""
    generator = np.random.default_rng(0)
    num_written = 0
    with path.open("w") as stream:
        while num_written < num_texts:
            sentences = draw_sentences(generator)[: num_texts - num_written]
            for sentence in sentences:
                stream.write(" ".join(sentence.split()[:LONGEST_TEXT_WORDS]) + "\n")
            num_written += len(sentences)


def make_model(folder: Path, texts: Path, tokenizer_folder: Path) -> None:
    """A tiny encoder with random weights and a vocabulary of the texts."""
    size = str(VOCABULARY_SIZE)
    words = ["train-tokenizer", str(texts), "--vocab-size", size, "--output", str(tokenizer_folder)]
    watch("bertkit", words)
    tokenizer = Tokenizer.load(tokenizer_folder)
    torch.manual_seed(0)
    config = BertConfig(vocab_size=tokenizer.vocab_size, **SIZES)
    BertModel(config).save_pretrained(folder)
    tokenizer.save(folder)


if __name__ == "__main__":
    main()
