"""A text goes through few files of the package to its vector, and its own file is read once."""

import io
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.unit.retrieval.small_embedding import (
    NUM_TEXTS,
    WINDOW_TEXTS,
    load,
    make_texts,
    settings,
    use_engine,
    use_small_windows,
)
from tests.walks import Walk, follow

from bertkit.data.tables.text_files import TextFiles
from bertkit.data.tables.texts import TextRow
from bertkit.retrieval.embed import embed
from bertkit.retrieval.unfinished_vectors import VECTOR_WRITERS

FLOOR = "base/"  # on which all else stands; its files aren't counted
MAX_FILES = 16


@pytest.fixture
def walk() -> Iterator[Walk]:
    with follow(Walk(is_watched=False)) as walk:
        yield walk


def test_a_text_walks_through_few_files_from_one_read_of_its_own(
    model, tmp_path, monkeypatch, walk
):
    use_small_windows(monkeypatch)
    embedder = load(model, engine="openvino")
    embedder.warm_up()  # it compiles the model
    use_engine(monkeypatch, embedder)
    source, output = tmp_path / "in.jsonl", tmp_path / "vectors.jsonl"
    rows = [{"key": f"id {number}", "text": text} for number, text in enumerate(make_texts())]
    source.write_text("".join(f"{json.dumps(row)}\n" for row in rows))

    read = TextFiles.rows

    def watch(files: TextFiles) -> Iterator[TextRow]:
        """Watch texts from where the input is open, and for as long as it is."""
        for number, row in enumerate(read(files)):
            walk.is_watched = WINDOW_TEXTS <= number < NUM_TEXTS - 1
            yield row

    monkeypatch.setattr(TextFiles, "rows", watch)
    opened, open_file = [], io.open

    def note_opened(path: Any, *arguments: Any, **options: Any) -> Any:
        opened.append(path)
        return open_file(path, *arguments, **options)

    monkeypatch.setattr(io, "open", note_opened)  # of `Path.open`
    write: Callable[..., Any] = VECTOR_WRITERS[".jsonl"]

    def watch_writing(*arguments: Any) -> None:
        walk.is_watched = True
        write(*arguments)
        walk.is_watched = False

    monkeypatch.setitem(VECTOR_WRITERS, ".jsonl", watch_writing)
    embed(model, source, output, settings(id_column="key"))
    first = json.loads(output.read_text().partition("\n")[0])
    assert (first["id"], len(first["embedding"])) == ("id 0", 8)
    visited = sorted(name for name in walk.files if not name.startswith(FLOOR))
    assert {"data/tables/texts.py", "inference/pipeline.py", "retrieval/embed.py"} < set(visited)
    assert opened.count(source) == 3  # of its head before and behind, and of all of it
    assert len(visited) <= MAX_FILES, " ".join(visited)
