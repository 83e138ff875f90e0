"""Speed of preparing a corpus beside a pipeline of `datasets` that stores the same.

    python benchmarks/bench_prepare.py --data books/ --megabytes 20

Both read the same text files in one process, cut the same sentences with sentencex, tokenize them,
and write token ids with the borders of sentences and documents, with SHA-256 and CRC-32 of each
mebibyte. The peer maps over its files with the fast tokenizer of tokenizers or of transformers,
whichever is faster, at its best batch size, and writes Arrow once. Ids and borders are compared.
Rounds are interleaved. What counts is processor time of the whole process, so that other work on
the machine does little harm; the time by the clock stands beside it. Without `--data`, a folder of
`.txt.gz` files, the text is Python's documentation.
"""

import gzip
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

os.environ["TOKENIZERS_PARALLELISM"] = "false"  # read when the libraries are loaded

import datasets
import numpy as np
from transformers import AutoTokenizer

from bertkit.base.checksums import Checksums
from bertkit.base.parts import WorkersSettings
from bertkit.data.documents import open_corpus, read_source
from bertkit.data.problems import ReadReport
from bertkit.data.sentences import split_sentences
from bertkit.data.shards import ShardSet
from bertkit.recipes.prepare.run import prepare
from bertkit.recipes.prepare.work_unit import SHARD_TOKENS, ShardWriter, batch_documents
from bertkit.recipes.settings import PrepareSettings
from bertkit.recipes.train_tokenizer import TrainTokenizerSettings, train_tokenizer
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit_demo import python_docs
from program import build_parser, list_versions, write_figures
from text_sets import read_gzip
from turns import spread

SETTINGS = PrepareSettings(language="en", sentences="split", held_out=0.02, seed=0)
PACKAGES = ("datasets", "pyarrow", "sentencex", "tokenizers")
BATCH_SIZES = (100, 1_000, 5_000)
NUM_CALIBRATION_SENTENCES = 5_000
Encode = Callable[[list[str]], list[list[int]]]


def main() -> None:
    parser = build_parser(__doc__, "prepare.json", data=None, rounds=3)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--tokenizer", type=Path, help="trained on the text without this")
    parser.add_argument("--megabytes", type=float, default=20.0, help="whole files up to this")
    arguments = parser.parse_args()
    datasets.disable_progress_bars()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        files = choose_files(arguments.data or write_documentation(place), arguments.megabytes)
        tokenizer = arguments.tokenizer or train(files, place / "tokenizer")
        results = compare(files, tokenizer, arguments.rounds, place)
    write_figures(arguments.output, list_versions(*PACKAGES), results=results)
    show(results)


def choose_files(data: Path, megabytes: float) -> list[Path]:
    """The first files of a folder, as many as hold so much text, and one at least."""
    chosen: list[Path] = []
    size = 0
    for path in sorted(data.glob("*.txt.gz")):
        size += count_bytes([path])
        if chosen and size > megabytes * 1e6:
            break
        chosen.append(path)
    return chosen


def count_bytes(files: Sequence[Path]) -> int:
    return sum(len(gzip.decompress(path.read_bytes())) for path in files)


def write_documentation(folder: Path) -> Path:
    text = "\n\n".join("\n".join(document.lines) for document in python_docs.read_documents([]))
    (folder / "text").mkdir()
    (folder / "text" / "python.txt.gz").write_bytes(gzip.compress(text.encode()))
    return folder / "text"


def train(files: Sequence[Path], folder: Path) -> Path:
    settings = TrainTokenizerSettings(vocab_size=30_522, min_frequency=1)
    train_tokenizer([str(path) for path in files], folder, settings)
    return folder


def compare(
    files: Sequence[Path], tokenizer: Path, rounds: int, folder: Path
) -> list[dict[str, Any]]:
    """Time all sides in turn, and hold what they wrote against each other."""
    encode, described = choose_encoder(tokenizer, files[0])
    sides: dict[str, Callable[[Path], None]] = {
        "datasets": lambda place: run_peer(files, encode, place),
        "bertkit": lambda place: run_ours(files, tokenizer, place),
    }
    seconds: dict[str, list[tuple[float, float]]] = {side: [] for side in sides}
    parts: list[dict[str, float]] = []
    for number in range(rounds):
        places = {side: folder / f"{side}-{number}" for side in sides}
        for side, run in sides.items():
            places[side].mkdir()
            seconds[side].append(measure(run, places[side]))
        theirs = sorted(read_theirs(places.pop("datasets")))
        if other := [side for side, place in places.items() if sorted(read_ours(place)) != theirs]:
            raise SystemExit(f"{' and '.join(other)} stored other sentences or ids than datasets")
        parts.append(measure_parts(files, tokenizer, folder / f"parts-{number}"))
    megabytes = count_bytes(files) / 1e6
    rows = [summarize(side, megabytes, seconds) for side in sides]
    rows[0]["encoder"] = described
    medians = {name: statistics.median(part[name] for part in parts) for name in parts[0]}
    return [*rows, {"side": "parts of bertkit", "megabytes": megabytes, "seconds": medians}]


def measure(run: Callable[[Path], None], place: Path) -> tuple[float, float]:
    """Seconds of processor time, and by the clock."""
    started = time.perf_counter()
    return processor_seconds(run, place), time.perf_counter() - started


def processor_seconds(run: Callable[[Any], object], given: Any) -> float:
    begun = time.process_time()
    run(given)
    return time.process_time() - begun


def run_ours(files: Sequence[Path], tokenizer: Path, place: Path) -> None:
    prepare(
        [str(path) for path in files],
        tokenizer,
        place / "shards",
        SETTINGS,
        workers=WorkersSettings(workers=1),
    )


def choose_encoder(tokenizer: Path, file: Path) -> tuple[Encode, str]:
    """The peer's fastest way to cut sentences on this machine, and what it is."""
    theirs = AutoTokenizer.from_pretrained(tokenizer)
    engine = theirs.backend_tokenizer
    options = {"return_attention_mask": False, "return_token_type_ids": False, "verbose": False}
    ways: dict[str, Encode] = {
        "transformers": lambda texts: theirs(texts, add_special_tokens=False, **options).input_ids,
        "tokenizers": lambda texts: [
            encoding.ids for encoding in engine.encode_batch_fast(texts, add_special_tokens=False)
        ],
    }
    sentences = [text for document in read_documents(file) for text in document]
    sentences = sentences[:NUM_CALIBRATION_SENTENCES]
    candidates = {
        f"{name}, {size:,} sentences a call": in_batches(way, size)
        for name, way in ways.items()
        for size in BATCH_SIZES
    }
    seconds = {name: processor_seconds(encode, sentences) for name, encode in candidates.items()}
    best = min(seconds, key=seconds.__getitem__)
    return candidates[best], best


def in_batches(way: Encode, size: int) -> Encode:
    return lambda texts: [
        ids for start in range(0, len(texts), size) for ids in way(texts[start : start + size])
    ]


def read_documents(path: Path) -> Iterator[list[str]]:
    """The sentences of each document of a text file, as the peer reads it."""
    for text in read_gzip(path).split("\n\n"):
        sentences = [part for line in text.split("\n") for part in split_sentences(line)]
        if sentences:
            yield sentences


def run_peer(files: Sequence[Path], encode: Encode, place: Path) -> None:
    """Map over files to documents of sentences of token ids, in Arrow, and take checksums."""

    def cut(batch: dict[str, list[str]]) -> dict[str, list[list[list[int]]]]:
        documents = [found for path in batch["path"] for found in read_documents(Path(path))]
        ids = iter(encode([text for document in documents for text in document]))
        return {"input_ids": [[*islice(ids, len(document))] for document in documents]}

    ids = datasets.List(datasets.List(datasets.Value("uint16")))
    datasets.Dataset.from_dict({"path": [str(path) for path in files]}).map(
        cut,
        batched=True,
        batch_size=1,
        remove_columns=["path"],
        features=datasets.Features({"input_ids": ids}),
        cache_file_name=str(place / "data.arrow"),
        new_fingerprint="bertkit",
    )
    checksums = Checksums()
    with (place / "data.arrow").open("rb+") as stream:
        while data := stream.read(1 << 20):
            checksums.update(data)
        os.fsync(stream.fileno())
    (place / "checksums.json").write_text(checksums.record().model_dump_json())


def read_theirs(place: Path) -> list[list[list[int]]]:
    rows = datasets.Dataset.from_file(str(place / "data.arrow"))
    documents = [[ids for ids in row if ids] for row in rows["input_ids"]]
    return [document for document in documents if document]


def read_ours(place: Path) -> list[list[list[int]]]:
    """What we stored, in the same form: what is held out stands behind the rest."""
    found = []
    shards = ShardSet.open(place / "shards")
    for shard in (*shards.train, *shards.held_out):
        tokens = shard.tokens(0, shard.num_tokens).tolist()
        starts = shard.sentence_offsets.tolist()
        for first, last in pairwise(shard.document_offsets.tolist()):
            borders = pairwise(starts[first : last + 1])
            found.append([tokens[start:stop] for start, stop in borders])
    return found


def measure_parts(files: Sequence[Path], tokenizer: Path, place: Path) -> dict[str, float]:
    """Processor time of each part of ours by itself."""
    (place / "parts").mkdir(parents=True)
    loaded = Tokenizer.load(tokenizer)
    sources = open_corpus([str(path) for path in files], SETTINGS).sources
    seconds: dict[str, float] = {}

    def note(name: str, begun: float) -> None:
        seconds[name] = time.process_time() - begun

    begun = time.process_time()
    documents = [
        document for source in sources for document in read_source(source, SETTINGS, ReadReport())
    ]
    note("reading", begun)
    batches = list(batch_documents(documents))
    begun = time.process_time()
    sentences = [
        [
            sentence
            for document in batch
            for line in document.lines
            for sentence in split_sentences(line, SETTINGS.language)
        ]
        for batch in batches
    ]
    note("splitting", begun)
    begun = time.process_time()
    pieces = [loaded.piece_arrays(texts) for texts in sentences]
    note("tokenizing", begun)
    writer = ShardWriter(place, "train", 0, loaded.vocab_size, SHARD_TOKENS)
    begun = time.process_time()
    for found in pieces:
        writer.add(found.ids, np.diff(found.ends, prepend=0))
    writer.flush()
    note("writing", begun)
    return seconds


def summarize(
    side: str, megabytes: float, seconds: dict[str, list[tuple[float, float]]]
) -> dict[str, Any]:
    pairs = zip(seconds["datasets"], seconds[side], strict=True)
    ratios = [theirs / ours for (theirs, _), (ours, _) in pairs]
    return {
        "side": side,
        "megabytes": megabytes,
        "megabytes_per_processor_second": megabytes
        / statistics.median(x for x, _ in seconds[side]),
        "megabytes_per_second_by_the_clock": megabytes
        / statistics.median(x for _, x in seconds[side]),
        **spread(ratios, "ratio"),
    }


def show(results: list[dict[str, Any]]) -> None:
    *rows, parts = results
    for row in rows:
        print(
            f"{row['side']:>14}: {row['megabytes_per_processor_second']:.2f} MB a second and core,"
            f" {row['ratio']:.1f} × ({row['low']:.1f}-{row['high']:.1f})"
        )
    for name, seconds in parts["seconds"].items():
        print(f"{name:>20}: {seconds:.2f} s, {parts['megabytes'] / seconds:.0f} MB/s")


if __name__ == "__main__":
    main()
