"""Two files line by line, or one with two columns; nothing moves against the other side."""

import gzip
import json
import random
from pathlib import Path

import pytest
from tests.unit.data.corpora import COMPRESS
from tests.unit.data.tables.labeled import write

from bertkit.base.errors import InputError, MissingFileError
from bertkit.decoders.seq2seq import pairs as module
from bertkit.decoders.seq2seq.pairs import Pair, PairReport, PairSettings, read_pairs

PAIRS = [("Ein Hund.", "A dog."), ("Zwei\u2028Katzen", 'Two "cats"'), ("süß", "sweet")]
DICTS = [{"source": source, "target": target} for source, target in PAIRS]
TABLES = {
    "a.tsv": "source\tn\ttarget\n" + "".join(f"{left}\t1\t{right}\n" for left, right in PAIRS),
    "a.csv": 'source,target\n"Ein Hund.",A dog.\nZwei\u2028Katzen,"Two ""cats"""\nsüß,sweet\n',
    "a.jsonl": "".join(json.dumps(values) + "\n" for values in DICTS),
}


def write_two(folder: Path, source: str | bytes, target: str | bytes) -> tuple[Path, Path]:
    return write(folder, "a.de", source), write(folder, "a.en", target)


def read(*sources: Path, **settings: object) -> tuple[list[Pair], PairReport]:
    target = sources[1] if len(sources) > 1 else None
    pairs, report = read_pairs(sources[0], target, PairSettings(**settings))
    assert all(isinstance(pair, Pair) for pair in pairs)
    return pairs, report


def refuse(match: str, *sources: Path | str, error: type = InputError, **settings: object) -> None:
    with pytest.raises(error, match=match) as caught:
        read_pairs(sources[0], *sources[1:], settings=PairSettings(**settings))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("suffix", ["", *COMPRESS])
def test_two_files_are_read_line_by_line(tmp_path, suffix):
    def pack(side: int, end: str) -> bytes:
        content = "".join(pair[side] + end for pair in PAIRS).encode()
        return COMPRESS[suffix](content) if suffix else content

    source = write(tmp_path, f"train.de{suffix}", pack(0, "\n"))
    target = write(tmp_path, f"train.en{suffix}", pack(1, "\r\n"))
    pairs, report = read(source, target)
    assert pairs == PAIRS
    assert report.summary_lines() == []


@pytest.mark.parametrize("name", TABLES)
def test_a_table_has_both_sides(tmp_path, name):
    path = write(tmp_path, name, TABLES[name])
    pairs, report = read(path)
    assert pairs == PAIRS
    assert report.summary_lines() == []
    swapped, _ = read(path, source_column="target", target_column="source")
    assert swapped == [(target, source) for source, target in PAIRS]


def test_columns_may_have_numbers_or_lie_in_one_field(tmp_path):
    path = write(tmp_path, "a.tsv", "Hund\tdog\nKatze\tcat\n")
    columns = {"source_column": "1", "target_column": "2"}
    assert read(path, header=False, **columns)[0] == [("Hund", "dog"), ("Katze", "cat")]
    rows = [{"translation": {"de": "Hund", "en": "dog"}}, {"translation": {"de": "Katze"}}]
    path = write(tmp_path, "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    columns = {"source_column": "translation.de", "target_column": "translation.en"}
    pairs, report = read(path, max_broken=0.5, **columns)
    assert pairs == [("Hund", "dog")]
    assert "line 2 has nothing in translation.en" in report.files[0].first_broken[0]


@pytest.mark.parametrize("line", [0, 1])
def test_a_row_without_a_column_is_left_out_whichever_it_is(tmp_path, line):
    rows = [*DICTS, {"target": "alone"}]
    rows[line], rows[-1] = rows[-1], rows[line]
    path = write(tmp_path, "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    pairs, report = read(path, max_broken=0.25)
    assert sorted(pairs) == sorted(PAIRS)
    assert f"line {line + 1} has nothing in source" in report.files[0].first_broken[0]
    refuse(f"25.0 %.* are broken, .*line {line + 1} has nothing", path)
    refuse("has no column gone; name one", path, max_broken=0.25, source_column="gone")


def test_a_cr_within_a_line_moves_nothing(tmp_path):
    source = b"eins\nzwei\rund drei\r\nvier\n"
    pairs, _ = read(*write_two(tmp_path, source, b"one\ntwo and three\nfour\n"))
    assert pairs == [("eins", "one"), ("zwei\rund drei", "two and three"), ("vier", "four")]
    old, _ = read(*write_two(tmp_path, b"eins\rzwei\r", b"one\ntwo\n"))
    assert old == [("eins", "one"), ("zwei", "two")]


def test_unequal_counts_are_told_and_refused(tmp_path):
    sources = write_two(tmp_path, "eins\nzwei\ndrei\n", "one\ntwo\n")
    refuse("a.de has 3 lines and .*a.en has 2; line n of one", *sources)
    sources = write_two(tmp_path, "eins\nzwei", "one\ntwo\n\n\n\n")
    refuse("a.de has 2 lines and .*a.en has 5", *sources)


def test_pairs_with_an_empty_side_are_left_out_and_counted(tmp_path):
    source = "eins\n\ndrei\n \t\nfünf".encode() + b"\xff\n"
    pairs, report = read(*write_two(tmp_path, source, "one\ntwo\n\0\nfour\nfi\0ve\n"))
    assert pairs == [("eins", "one"), ("fünf\ufffd", "five")]
    assert (report.num_empty, report.num_with_nul) == (3, 2)
    assert report.files[0].num_undecodable == 1
    assert report.summary_lines()[1:] == [
        f"{report.name}: 3 of 5 pairs without text on one side, left out",
        f"{report.name}: 2 of 5 pairs with NULs, which were dropped",
    ]


def test_far_too_long_texts_are_left_out_and_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_CHARS", 6)
    sources = write_two(tmp_path, "zwanzig\nzwei\nzehn\n", "twenty\ntwo\nexactly ten\n")
    pairs, report = read(*sources)
    assert pairs == [("zwei", "two")]
    assert report.num_too_long == 2
    assert "2 of 3 pairs with over 6 characters" in report.summary_lines()[0]
    monkeypatch.setattr(module, "MAX_CHARS", 1)
    refuse("no pair with text on both sides", *sources)


def test_damaged_and_wrong_files_are_refused(tmp_path, monkeypatch):
    refuse("has no pair with text on both sides", *write_two(tmp_path, "\n\n", "a\nb\n"))
    refuse("isn't text", *write_two(tmp_path, bytes(range(256)) * 100, "one\n"))
    refuse("line 1 has more than 16 MiB", *write_two(tmp_path, "a" * ((16 << 20) + 1), "a\n"))
    with monkeypatch.context() as patch:
        patch.setattr(module, "MAX_BYTES", 10)
        refuse("more than is held in memory", *write_two(tmp_path, "eins\nzwei\n", "one\ntwo\n"))
    text = write(tmp_path, "a.en", "one\n" * 9000)
    packed = gzip.compress(random.Random(0).randbytes(30_000).hex().encode())
    refuse("damaged or cut short", write(tmp_path, "a.de.gz", packed[:-2000]), text)
    refuse("doesn't exist", tmp_path / "none.de", text, error=MissingFileError)
    refuse("is a folder; name a file", tmp_path, text)
    refuse("can't be standard input", text, "-")
    refuse("would be csv; name one file", write(tmp_path, "a.csv", TABLES["a.csv"]), text)
    refuse("would be tsv; name one file", text, text, format="tsv")
    refuse("isn't text: unpack it first", write(tmp_path, "a.zip", "one\n"), text)
    refuse("is text without columns; name a second file", write(tmp_path, "a.txt", "one\n"))


def test_tables_without_the_columns_or_with_broken_rows_are_refused(tmp_path):
    path = write(tmp_path, "a.csv", "de,en\neins,one\n")
    refuse("no column source; name one of its columns with --source-column: de, en", path)
    refuse("no column target; .* --target-column: de, en", path, source_column="de")
    path = write(tmp_path, "a.jsonl", '{"source": "eins", "target": 1}\n')
    refuse("1 of 1 rows .* are broken.*line 1 has int in target", path, max_broken=1.0)
    refuse("has no rows", write(tmp_path, "a.csv", "source,target\n"))
