"""What `tokenizer.json` may ask for; the hostile suite watches the same files' time and memory."""

import json

import numpy as np
import pytest
from tests.charsmaps import build_charsmap
from tests.hostile.tokenizer_files import MILLION, cases
from tests.tokenizer_folders import KINDS, TEXTS, make_tokenizer

from bertkit.base.errors import InputError
from bertkit.tokenization import charsmap
from bertkit.tokenization.tokenizer import Tokenizer

SMALL = [case for case in cases() if case.size_bytes < MILLION]


@pytest.mark.parametrize("case", SMALL, ids=str)
def test_what_no_published_encoder_has_is_refused_by_name(case, tmp_path):
    case.write(tmp_path)
    with pytest.raises(case.error, match=case.match) as caught:
        Tokenizer.load(tmp_path)
    assert "tokenizer.json" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_charsmap_that_is_followed_beyond_its_end_is_refused_before():
    whole = build_charsmap({"a": "b"})
    assert charsmap._list_values(_read_units(whole)).tolist() == [0]
    with pytest.raises(ValueError, match="points beyond its end"):
        charsmap._list_values(_read_units(whole)[:200])


def _read_units(table: bytes):
    size = int.from_bytes(table[:4], "little")
    return np.frombuffer(table, "<u4", size // 4, 4)


def test_a_tokenizer_of_2020_names_no_algorithm(tmp_path):
    for kind in ("xlm-roberta", "roberta", "mpnet"):
        folder = make_tokenizer(tmp_path / kind, kind)
        before = Tokenizer.load(folder)
        content = json.loads((folder / "tokenizer.json").read_text())
        del content["model"]["type"]
        (folder / "tokenizer.json").write_text(json.dumps(content))
        after = Tokenizer.load(folder)
        assert after.kind == before.kind
        assert after.piece_ids(TEXTS.values()) == before.piece_ids(TEXTS.values())


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["sentencepiece.bpe.model"], r"sentencepiece\.bpe\.model alone"),
        (["vocab.json", "merges.txt"], r"vocab\.json and merges\.txt alone"),
    ],
)
def test_a_folder_without_tokenizer_json_says_how_to_make_one(tmp_path, names, shown):
    for name in names:
        (tmp_path / name).write_bytes(b"x")
    with pytest.raises(InputError, match=rf"{shown}.*from_pretrained.*save_pretrained"):
        Tokenizer.load(tmp_path)


def test_a_word_piece_with_other_tokens_lists_the_same_entries_in_vocab_txt(tmp_path):
    folder = make_tokenizer(tmp_path, "mpnet")
    entries = Tokenizer.load(folder).vocabulary
    (folder / "vocab.txt").write_text("".join(f"{entry}\n" for entry in entries))
    assert Tokenizer.load(folder).vocabulary == entries
    (folder / "vocab.txt").write_text("".join(f"{entry}\n" for entry in entries[::-1]))
    with pytest.raises(InputError, match="have different entries"):
        Tokenizer.load(folder)


@pytest.mark.parametrize("kind", KINDS)
def test_tokens_that_the_config_adds_must_be_entries(tmp_path, kind):
    folder = make_tokenizer(tmp_path, kind)
    path = folder / "tokenizer_config.json"
    config = json.loads(path.read_text())
    listed = json.loads((folder / "tokenizer.json").read_text())["added_tokens"]
    config["added_tokens_decoder"] = {str(one["id"]): one for one in listed}
    path.write_text(json.dumps(config))
    assert Tokenizer.load(folder).vocab_size > 100
    config["added_tokens_decoder"]["99999"] = {"content": "<new>"}
    path.write_text(json.dumps(config))
    with pytest.raises(InputError, match="'<new>' isn't entry '99999' of the vocabulary"):
        Tokenizer.load(folder)
