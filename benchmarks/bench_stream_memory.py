"""Peak memory of `bertkit embed` at more and more texts: it must not grow with their number.

    python benchmarks/bench_stream_memory.py --nums-texts 1000 100000 1000000

The texts are generated sentences of up to a dozen words, the model is a tiny one with random
weights and a vocabulary trained on them, so that a million texts take minutes; what is measured is
all that stands around the model. The command runs as a user runs it; its peak is what the system
says that the process has held at most. The other forms are written at the middle size. Linux only.
"""

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from peaks import check_system, make_model, watch_bertkit, write_texts
from program import build_parser, list_versions, write_figures

FORMS = ("npy", "parquet", "jsonl")


def main() -> None:
    parser = build_parser(__doc__, "stream_memory.json", data=None)
    parser.add_argument("--nums-texts", type=int, nargs="+", default=[1000, 100_000, 1_000_000])
    parser.add_argument("--forms", nargs="+", default=FORMS, help="of the middle size")
    parser.add_argument("--engines", nargs="+", default=["torch"])
    arguments = parser.parse_args()
    check_system()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        make_model(folder / "tiny")
        rows = list(measure(folder, arguments.nums_texts, arguments.engines, arguments.forms))
    versions = list_versions("numpy", "pyarrow", "tokenizers")
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
                yield measure_form(folder / "tiny" / "model", texts, num_texts, engine, form)
        texts.unlink()


def measure_form(
    model: Path, texts: Path, num_texts: int, engine: str, form: str
) -> dict[str, Any]:
    output = texts.with_suffix(f".{engine}.{form}")
    words = ["embed", texts, "--model", model, "--output", output, "--engine", engine]
    words += ["--precision", "fp32", "--pooling", "mean"]
    row = {
        "num_texts": num_texts,
        "engine": engine,
        "form": form,
        "input_bytes": texts.stat().st_size,
        **watch_bertkit(*words),
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


if __name__ == "__main__":
    main()
