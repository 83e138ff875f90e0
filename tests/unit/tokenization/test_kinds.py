"""Tokenizers of each published kind: what bertkit needs of them beside the ids."""

import json
import pickle

import pytest
from tests.tokenizer_folders import KINDS, TEXTS, make_tokenizer

from bertkit.tokenization.tokenizer import Tokenizer

OF_BERT = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
OF_ROBERTA = ("<pad>", "<unk>", "<s>", "</s>", "<mask>")
SPECIAL = {
    "bert": OF_BERT,
    "mpnet": ("<pad>", "[UNK]", "<s>", "</s>", "<mask>"),
    "roberta": OF_ROBERTA,
    "modernbert": OF_BERT,
    "xlm-roberta": OF_ROBERTA,
    "bge-m3": OF_ROBERTA,
    "camembert": OF_ROBERTA,
}
OTHERS = [kind for kind in KINDS if SPECIAL[kind][0] == "<pad>" or kind == "modernbert"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    home = tmp_path_factory.mktemp("tokenizers")
    return {kind: make_tokenizer(home / kind, kind) for kind in KINDS}


@pytest.fixture(scope="module")
def tokenizers(folders):
    return {kind: Tokenizer.load(folder) for kind, folder in folders.items()}


@pytest.mark.parametrize("kind", KINDS)
def test_special_tokens_are_found_by_their_use(tokenizers, kind):
    tokenizer = tokenizers[kind]
    assert tokenizer.special == SPECIAL[kind]
    ids = (
        tokenizer.pad_id,
        tokenizer.unk_id,
        tokenizer.cls_id,
        tokenizer.sep_id,
        tokenizer.mask_id,
    )
    assert [tokenizer.vocabulary[index] for index in ids] == [*SPECIAL[kind]]
    assert tokenizer.special_ids >= set(ids)
    assert tokenizer.mask == SPECIAL[kind][-1]


@pytest.mark.parametrize(
    ("kind", "gaps", "types"),
    [
        ("bert", ["[CLS]", "[SEP]", "[SEP]"], [0, 0, 0, 0, 1, 1]),
        ("modernbert", ["[CLS]", "[SEP]", "[SEP]"], [0] * 6),
        ("mpnet", ["<s>", "</s> </s>", "</s>"], [0] * 7),
        ("roberta", ["<s>", "</s> </s>", "</s>"], [0] * 7),
        ("camembert", ["<s>", "</s> </s>", "</s>"], [0] * 7),
    ],
)
def test_texts_are_joined_by_the_template(tokenizers, kind, gaps, types):
    tokenizer = tokenizers[kind]
    first, between, last = ([tokenizer.token_to_id(one) for one in gap.split()] for gap in gaps)
    a, b = [20, 21], [22]
    ids, found = tokenizer.join(a, b)
    assert ids == [*first, *a, *between, *b, *last]
    assert [found[1], *found[1 : len(ids)]] == [0, *found[1:]]
    assert len(found) == len(ids) == tokenizer.num_special(2) + 3
    starts = tokenizer.find_starts(2, 1)
    assert [ids[starts[0]], ids[starts[1]]] == [20, 22]
    assert sum(found) == sum(types)
    assert tokenizer.join(a)[0] == [*first, *a, *last]
    assert set(tokenizer.frame_ids) == {*first, *between, *last}


@pytest.mark.parametrize("kind", KINDS)
def test_what_looks_like_a_special_token_is_text(tokenizers, kind):
    tokenizer = tokenizers[kind]
    texts = [
        " ".join([*tokenizer.definition.controls, "x<s>y</s>"]),
        *tokenizer.definition.controls,
    ]
    known = tokenizer.special_ids - {tokenizer.unk_id}
    for ids in tokenizer.piece_ids(texts):
        assert known.isdisjoint(ids)
    masked = tokenizer.piece_ids([f"a {tokenizer.mask} b{tokenizer.mask}."], read_mask=True)[0]
    assert masked.count(tokenizer.mask_id) == 2


@pytest.mark.parametrize("kind", KINDS)
def test_a_folder_is_saved_as_it_was(tokenizers, folders, tmp_path, kind):
    before = tokenizers[kind]
    records = before.save(tmp_path, max_length=99)
    loaded, copy = Tokenizer.load(tmp_path), pickle.loads(pickle.dumps(before))
    for other in (loaded, copy):
        assert other.fingerprint == before.fingerprint
        assert other.vocabulary == before.vocabulary
        assert other.piece_ids(TEXTS.values()) == before.piece_ids(TEXTS.values())
    assert set(records) <= {path.name for path in tmp_path.iterdir()}
    config = json.loads((tmp_path / "tokenizer_config.json").read_text())
    assert config["model_max_length"] == 99
    if kind != "bert":
        name = "tokenizer.json"
        assert (tmp_path / name).read_text() == (folders[kind] / name).read_text()


@pytest.mark.parametrize("kind", OTHERS)
def test_names_in_the_config_arent_needed(tokenizers, folders, tmp_path, kind):
    (tmp_path / "tokenizer.json").write_text((folders[kind] / "tokenizer.json").read_text())
    loaded = Tokenizer.load(tmp_path)
    assert loaded.special == tokenizers[kind].special


@pytest.mark.parametrize("kind", KINDS)
def test_words_given_one_by_one_have_the_pieces_that_they_have_in_a_text(tokenizers, kind):
    tokenizer = tokenizers[kind]
    text = "x are born free and equal"
    words = text.split()[1:]
    [whole, first] = tokenizer.piece_ids([text, "x"])
    given = tokenizer.word_piece_ids(words)
    assert [*first, *(index for ids in given for index in ids)] == whole
    assert tokenizer.word_piece_ids(["", " "]) == [[], []]


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_are_described_as_people_read_them(tokenizers, kind):
    tokenizer = tokenizers[kind]
    ids = tokenizer.piece_ids(["x and rights, x"])[0]
    shown = [tokenizer.describe_piece(index) for index in ids]
    joined = " ".join(shown).removeprefix("##").replace(" ##", "").replace("␣", "")
    assert joined == "x and rights , x"
    lengths = tokenizer.token_lengths
    assert lengths[ids].sum() == len("xandrights,x")
    assert not lengths[list(tokenizer.special_ids)].any()


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_of_scripts_without_blanks_are_words(tokenizers, kind):
    tokenizer = tokenizers[kind]
    texts = [TEXTS["th"], "人人生而自由", "すべての"]
    ids = [index for own in tokenizer.piece_ids(texts) for index in own]
    shown = [tokenizer.describe_piece(index).removeprefix("##") for index in ids]
    of_script = [
        index for index, one in zip(ids, shown, strict=True) if "\u0e00" <= one[0] <= "\u9fff"
    ]
    assert len(of_script) > 5
    assert not tokenizer.is_continuation[of_script].any()


@pytest.mark.parametrize("kind", ["roberta", "xlm-roberta", "modernbert"])
def test_words_of_a_text_are_found_in_any_script(tokenizers, kind):
    text = "Don't say “中国人” or すべてのカメラー, ok?"
    words = [text[start:stop] for start, stop in tokenizers[kind].find_words(text)]
    expected = ["Don", "'", "t", "say", "“", "中", "国", "人", "”", "or"]
    assert words == [*expected, *"すべての", "カメラー", ",", "ok", "?"]
    thai = TEXTS["th"]
    spans = tokenizers[kind].find_words(f"a {thai} b")
    assert len(spans) > 5
    assert "".join(f"a {thai} b"[start:stop] for start, stop in spans) == f"a{thai}b"


@pytest.mark.parametrize("kind", KINDS)
def test_a_whole_word_is_found_with_and_without_a_blank(tokenizers, kind):
    tokenizer = tokenizers[kind]
    found = tokenizer.find_entry("and")
    assert found is not None
    assert tokenizer.piece_ids(["x and"])[0][-1] == found
    assert tokenizer.find_entry(" and") == found
    assert tokenizer.find_entry("dignity and rights") is None
    assert tokenizer.find_entry(tokenizer.vocabulary[found]) == found


@pytest.mark.parametrize("kind", ["bge-m3", "modernbert", "roberta", "camembert"])
def test_blanks_before_a_word_arent_of_its_piece(tokenizers, kind):
    text = "All human beings"
    encoding = tokenizers[kind].encode(text)
    assert not any(text[start:stop].startswith(" ") for start, stop in encoding.offsets)
    starts = {start for start, stop in encoding.offsets if start < stop}
    assert {0, 4, 10} <= starts


def test_runs_of_spaces_are_entries_of_modernbert(tokenizers):
    tokenizer = tokenizers["modernbert"]
    four = tokenizer.token_to_id("    ")
    assert four in tokenizer.piece_ids(["a    b"])[0]
    assert tokenizer.describe_piece(four) == "␣␣␣␣"
    assert tokenizer.token_lengths[four] == 0
    address = tokenizer.token_to_id("|||IP_ADDRESS|||")
    assert tokenizer.piece_ids(["x |||IP_ADDRESS||| y"])[0].count(address) == 1


def test_the_first_piece_of_a_text_is_described_as_the_beginning_of_a_word(tokenizers):
    tokenizer = tokenizers["roberta"]
    [[first, *_]] = tokenizer.piece_ids(["b"])
    assert tokenizer.describe_piece(first) == "##b"
    assert tokenizer.describe_piece(first, begins_text=True) == "b"
