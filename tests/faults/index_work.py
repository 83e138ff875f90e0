"""What child processes do with an index, and how its content is compared."""

import hashlib
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np

from bertkit.base.errors import MissingFileError
from bertkit.retrieval.index import Index
from bertkit.retrieval.index_file import IndexFile
from bertkit.retrieval.index_model import IndexModel

DIMENSION = 96
INDEX = "x.bertkit"
NUM_ROUNDS = 3
WORDS = [
    "bicycle",
    "bread",
    "coffee",
    "bee",
    "lighthouse",
    "printing",
    "tide",
    "wheel",
    "oven",
    "honey",
    "lamp",
    "ink",
]


def embed(texts: list[str]) -> np.ndarray:
    """A vector of each text, the same in all processes."""
    vectors = np.zeros((len(texts), DIMENSION), np.float32)
    for number, text in enumerate(texts):
        for word in text.split():
            vectors[number, zlib.crc32(word.encode()) % DIMENSION] += 1
    return vectors


def open_index(path: Path) -> Index:
    model = IndexModel(
        identity={"model": "words", "dimension": DIMENSION},
        similarity="cosine",
        embed_passages=embed,
        embed_queries=embed,
        measure=lambda text: len(text.split()),
        passage_tokens=12,
    )
    return Index(path, model=model)


def make_text(number: int) -> str:
    random = np.random.default_rng(number)
    return " ".join(random.choice(WORDS, 20)) + f" number{number}"


def list_steps(folder: Path) -> list[Callable[[Index], object]]:
    """Calls that add, replace, update and delete; each can be made again."""
    steps: list[Callable[[Index], object]] = []
    notes = folder / "notes"
    for number in range(NUM_ROUNDS):
        rows = [
            {"id": f"row {row}", "text": make_text(50 * number + row), "round": number}
            for row in range(10 * number, 10 * number + 40)
        ]

        def write_notes(index: Index, number: int = number) -> None:
            notes.mkdir(exist_ok=True)
            for note in range(6):
                path = notes / f"{note}.txt"
                path.unlink(missing_ok=True)
                if note != number:
                    path.write_text("\n\n".join(map(make_text, range(note, note + 4 + number))))
            index.update(notes)

        steps += [
            lambda index, rows=rows: index.add(rows, id="id", text="text"),
            write_notes,
            lambda index, number=number: index.delete([f"row {10 * number + 5}", "row 0"]),
            lambda index, number=number: index.delete(where={"round": number - 1}),
        ]
    return steps


def work(folder: Path, done: Connection) -> None:
    """Do all steps, and send the number of each that is done."""
    with open_index(folder / INDEX) as index:
        for number, step in enumerate(list_steps(folder)):
            step(index)
            done.send(number)


def describe(path: Path) -> str:
    """A hash of all that an index holds, which must be whole; nothing if there is no document."""
    with suppress(MissingFileError), closing(IndexFile.open(path)):
        return _describe(path)
    return ""


def _describe(path: Path) -> str:
    digest = hashlib.sha256()
    with open_index(path) as index:
        file = index._open()
        with file.reading() as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            passages = connection.execute(
                "SELECT id, start, line, text, row FROM passages JOIN documents ON document ="
                " documents.number ORDER BY id, start"
            ).fetchall()
            if not passages:
                return ""
            num_words = connection.execute("SELECT count(*) FROM words").fetchone()[0]
            rows = [row for *_, row in passages]
            assert num_words == len(rows)
            vectors = index._vectors.read(connection, rows)
            assert np.array_equal(vectors, embed([text.strip() for *_, text, _ in passages]))
            digest.update(repr([passage[:-1] for passage in passages]).encode())
        for document in index.documents():
            digest.update(repr((document.id, sorted(document.fields.items()))).encode())
        for by in ("words", "vectors"):
            hits = index.search("bread and coffee", by=by, top_k=10_000)
            assert {hit.id for hit in hits} <= {name for name, *_ in passages}
            assert by == "words" or len(hits) == len(rows)
    return digest.hexdigest()


@contextmanager
def noting_states(path: Path) -> Iterator[list[str]]:
    """Collect a hash of the index after each of its transactions."""
    states, original = [], IndexFile.writing

    @contextmanager
    def writing(file: IndexFile) -> Iterator[object]:
        with original(file) as connection:
            yield connection
        states.append(describe(path))

    IndexFile.writing = writing
    try:
        yield states
    finally:
        IndexFile.writing = original


def name_text(name: str) -> str:
    """The text of a document, by its id."""
    return f"{make_text(zlib.crc32(name.encode()) % 1000)} {name}"


def write_pairs(path: Path, writer: str, num_rounds: int) -> None:
    """Add pairs of documents, and delete every third pair."""
    with open_index(path) as index:
        for number in range(num_rounds):
            pair = [f"{writer}-{number}-{side}" for side in "ab"]
            index.add([{"id": one, "text": name_text(one)} for one in pair], id="id", text="text")
            if number % 3 == 0:
                assert index.delete(pair) == 2


def read_pairs(path: Path, writing: Path) -> None:
    """Search as long as a file is there, and once more; each state has whole pairs."""
    with open_index(path) as index:
        is_last = False
        while not is_last:
            is_last = not writing.exists()
            names = [document.id for document in index.documents()]
            assert len(names) % 2 == 0
            for hit in index.search(make_text(len(names)), top_k=50):
                assert hit.text in name_text(hit.id)
