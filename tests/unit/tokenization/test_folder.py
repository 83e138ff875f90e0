import json
from pathlib import Path

import pytest

from bertkit.base.checksummed_json import write_checksummed_json
from bertkit.base.errors import BertkitError, DamagedFileError, InputError, MissingFileError
from bertkit.tokenization import vocabulary as vocabulary_module
from bertkit.tokenization.engine import SPECIAL_TOKENS
from bertkit.tokenization.settings import TokenizerSettings
from bertkit.tokenization.tokenizer import Tokenizer

# U+2028 and U+0085 end a line for str.splitlines, but not in vocab.txt
VOCABULARY = (*SPECIAL_TOKENS, "a", "##b", "é", "\u2028", "\x85")
CASED = TokenizerSettings(lowercase=False, strip_accents=False, split_cjk=False)


def write_vocabulary(path: Path, entries: tuple[str, ...]) -> Path:
    path.write_bytes("".join(f"{entry}\n" for entry in entries).encode())
    return path


def test_a_folder_comes_back_as_it_was_saved(tmp_path):
    saved = Tokenizer(VOCABULARY, CASED)
    saved.save(tmp_path / "new" / "tokenizer")
    loaded = Tokenizer.load(str(tmp_path / "new" / "tokenizer"))
    assert loaded.vocabulary == VOCABULARY
    assert loaded.settings == CASED
    assert loaded.fingerprint == saved.fingerprint


def test_a_byte_order_mark_is_no_part_of_the_first_entry(tmp_path):
    marked = write_vocabulary(tmp_path / "vocab.txt", ("\ufeff[PAD]", *VOCABULARY[1:]))
    assert Tokenizer.load(marked).vocabulary == VOCABULARY


def save_without_manifest(tokenizer: Tokenizer, folder: Path) -> None:
    tokenizer.save(folder)
    (folder / "tokenizer_manifest.json").unlink()


@pytest.mark.parametrize("name", ["vocab.txt", "tokenizer.json", "tokenizer_config.json"])
def test_a_file_that_was_altered_cut_or_lost_is_named(tmp_path, name):
    Tokenizer(VOCABULARY, CASED).save(tmp_path)
    path = tmp_path / name
    content = path.read_bytes()
    meant = r"if the change is intended, remove tokenizer_manifest\.json$"
    path.write_bytes(content[:-2] + bytes([content[-2] ^ 1]) + content[-1:])
    with pytest.raises(DamagedFileError, match=rf"{name} is damaged between bytes 0 and.*{meant}"):
        Tokenizer.load(tmp_path)
    path.write_bytes(content[:-1])
    with pytest.raises(DamagedFileError, match=rf"{name} has [0-9,]+ bytes and.*{meant}"):
        Tokenizer.load(tmp_path)
    path.unlink()
    with pytest.raises(MissingFileError, match=rf"{name} is missing; it had .*{meant}"):
        Tokenizer.load(tmp_path)


def test_vocab_txt_alone_is_held_against_the_manifest_beside_it(tmp_path):
    Tokenizer(VOCABULARY).save(tmp_path)
    path = write_vocabulary(tmp_path / "vocab.txt", (*VOCABULARY, "new"))
    with pytest.raises(DamagedFileError, match=r"vocab\.txt has 5. bytes"):
        Tokenizer.load(path)
    other = write_vocabulary(tmp_path / "other.txt", (*VOCABULARY, "new"))
    assert Tokenizer.load(other).vocab_size == len(VOCABULARY) + 1


def test_a_vocabulary_that_was_changed_on_purpose_is_read_without_the_manifest(tmp_path):
    save_without_manifest(Tokenizer(VOCABULARY), tmp_path)
    (tmp_path / "tokenizer.json").unlink()
    write_vocabulary(tmp_path / "vocab.txt", (*VOCABULARY, "new"))
    assert Tokenizer.load(tmp_path).vocabulary[-1] == "new"


def test_a_manifest_of_another_version_is_refused(tmp_path):
    Tokenizer(VOCABULARY).save(tmp_path)
    write_checksummed_json(tmp_path / "tokenizer_manifest.json", {"format_version": 7, "files": {}})
    with pytest.raises(DamagedFileError, match=r"format_version must be 1, got 7"):
        Tokenizer.load(tmp_path)


@pytest.mark.parametrize("missing", [["vocab.txt"], ["vocab.txt", "tokenizer_config.json"]])
def test_tokenizer_json_alone_is_enough(tmp_path, missing):
    saved = Tokenizer(VOCABULARY, CASED)
    save_without_manifest(saved, tmp_path)
    for name in missing:
        (tmp_path / name).unlink()
    assert Tokenizer.load(tmp_path).fingerprint == saved.fingerprint


def test_vocab_txt_alone_is_uncased(tmp_path):
    path = write_vocabulary(tmp_path / "vocab.txt", VOCABULARY)
    for loaded in (Tokenizer.load(path), Tokenizer.load(tmp_path)):
        assert loaded.vocabulary == VOCABULARY
        assert loaded.settings == TokenizerSettings()


def test_windows_line_ends_and_no_final_one_are_read(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_bytes("\r\n".join(VOCABULARY).encode())
    assert Tokenizer.load(path).vocabulary == VOCABULARY


@pytest.mark.parametrize(("lowercase", "expected"), [(True, True), (False, False)])
def test_open_accent_stripping_follows_lower_casing(tmp_path, lowercase, expected):
    write_vocabulary(tmp_path / "vocab.txt", VOCABULARY)
    config = {"do_lower_case": lowercase, "strip_accents": None, "other": 1}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    assert Tokenizer.load(tmp_path).settings.strip_accents is expected


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ((), "is empty"),
        (("[PAD]", "a"), r"lacks \[UNK\], \[CLS\], \[SEP\], \[MASK\]"),
        (("a", *SPECIAL_TOKENS), r"\[PAD\] must be entry 0"),
        ((*SPECIAL_TOKENS, "a", "b", "a"), "has 'a' twice, as entries 5 and 7"),
        ((*SPECIAL_TOKENS, "", "b"), "entry 5 is empty"),
        ((*SPECIAL_TOKENS, "x" * 1001), "entry 5 is 1,001 characters long"),
    ],
)
def test_a_vocabulary_that_cant_be_meant_is_refused(tmp_path, entries, message):
    path = write_vocabulary(tmp_path / "vocab.txt", entries)
    with pytest.raises(InputError, match=message) as caught:
        Tokenizer.load(path)
    assert str(path) in str(caught.value)
    with pytest.raises(InputError, match=message):
        Tokenizer(entries)


@pytest.mark.parametrize(
    ("entry", "message"),
    [("\ud800", "which contains half a character"), ("a\nb", "contains a line end")],
)
def test_an_entry_that_no_file_can_have_is_refused(entry, message):
    with pytest.raises(InputError, match=message):
        Tokenizer((*SPECIAL_TOKENS, entry))


def test_limits_come_before_the_work(tmp_path, monkeypatch):
    path = write_vocabulary(tmp_path / "vocab.txt", VOCABULARY)
    monkeypatch.setattr(vocabulary_module, "MAX_ENTRIES", 6)
    with pytest.raises(InputError, match="at most 6 are allowed"):
        Tokenizer.load(path)
    monkeypatch.setattr(vocabulary_module, "MAX_FILE_BYTES", 10)
    with pytest.raises(DamagedFileError, match="more than 10"):
        Tokenizer.load(path)


def test_files_that_arent_what_they_should_be(tmp_path):
    with pytest.raises(MissingFileError, match="has neither vocab"):
        Tokenizer.load(tmp_path)
    path = tmp_path / "vocab.txt"
    path.write_bytes(b"[PAD]\n\xff\n")
    with pytest.raises(DamagedFileError, match="isn't UTF-8 at byte 6"):
        Tokenizer.load(path)
    write_vocabulary(path, VOCABULARY)
    (tmp_path / "tokenizer_config.json").write_text("[]")
    with pytest.raises(InputError, match="expected a JSON object"):
        Tokenizer.load(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": "yes"}')
    with pytest.raises(InputError, match="do_lower_case must be true or false, got 'yes'"):
        Tokenizer.load(tmp_path)


@pytest.mark.parametrize(
    ("part", "value", "message"),
    [
        ("model", None, "has no object named model"),
        ("model", {"type": "WordLevel"}, "WordLevel tokenizer, as models without pieces of words"),
        ("model", {"type": "Letters"}, "model.type must be 'WordPiece', got 'Letters'"),
        ("model", {"max_input_chars_per_word": 200}, "must be 100, got 200"),
        ("model", {"continuing_subword_prefix": "@@"}, "must be '##', got '@@'"),
        ("model", {"vocab": ["a"]}, "must map each entry to its id"),
        ("model", {"vocab": {"[PAD]": True}}, "must map each entry to its id"),
        ("model", {"vocab": {"[PAD]": 0, "a": 2}}, "without a gap"),
        ("model", {"vocab": {}}, "without a gap"),
        ("model", {"vocab": {"[PAD]": 0}}, "lacks"),
        ("model", {"type": None}, "model.type must be 'WordPiece', got None"),
        ("normalizer", {"type": "NFC"}, "normalizer.type must be 'BertNormalizer', got 'NFC'"),
        ("normalizer", {"clean_text": False}, "normalizer.clean_text must be True, got False"),
        ("pre_tokenizer", {"type": "WhitespaceSplit"}, "must be 'BertPreTokenizer', got 'White"),
        ("added_tokens", [{"id": 10, "content": "<ent>"}], "'<ent>' isn't entry 10 of the voc"),
        ("added_tokens", [{"id": 9, "content": "a"}], "token 'a' isn't entry 9 of the vocab"),
        ("added_tokens", [{"content": "a"}], "an added token must have a content and an id"),
        (
            "added_tokens",
            [{"id": 5, "content": VOCABULARY[5]}],
            "bertkit would split it into pieces",
        ),
        ("added_tokens", {"content": "a"}, "added_tokens must be a list of objects"),
        ("added_tokens", ["a"], "added_tokens must be a list of objects"),
    ],
)
@pytest.mark.parametrize("has_vocabulary", [True, False])
def test_a_foreign_tokenizer_json_is_refused_by_name(
    tmp_path, has_vocabulary, part, value, message
):
    save_without_manifest(Tokenizer(VOCABULARY), tmp_path)
    if not has_vocabulary:
        (tmp_path / "vocab.txt").unlink()
    path = tmp_path / "tokenizer.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    is_merged = isinstance(value, dict) and part != "added_tokens"
    content[part] = content[part] | value if is_merged else value
    path.write_text(json.dumps(content))
    with pytest.raises(BertkitError, match=message):
        Tokenizer.load(tmp_path)


SPECIAL_DECODER = {str(index): {"content": token} for index, token in enumerate(SPECIAL_TOKENS)}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("added_tokens.json", {"<ent>": 10}, "added token '<ent>' isn't entry 10 of the vocab"),
        ("added_tokens.json", {VOCABULARY[5]: 5}, "bertkit would split it into pieces"),
        ("added_tokens.json", ["<ent>"], "expected a JSON object"),
        (
            "tokenizer_config.json",
            {"added_tokens_decoder": {**SPECIAL_DECODER, "10": {"content": "<ent>"}}},
            "added token '<ent>' isn't entry '10' of the vocab",
        ),
        ("tokenizer_config.json", {"added_tokens_decoder": ["<ent>"]}, "must map ids to objects"),
        ("tokenizer_config.json", {"added_tokens_decoder": {"10": 1}}, "must map ids to objects"),
        (
            "tokenizer_config.json",
            {"tokenizer_class": "BertJapaneseTokenizer"},
            "tokenizer_class must be 'BertTokenizer', got 'BertJapaneseTokenizer'",
        ),
        (
            "tokenizer_config.json",
            {"tokenizer_class": ["BertTokenizer"]},
            "tokenizer_class must be",
        ),
    ],
)
def test_what_a_folder_of_the_first_years_adds_to_its_vocabulary_is_refused(
    tmp_path, name, content, message
):
    write_vocabulary(tmp_path / "vocab.txt", VOCABULARY)
    (tmp_path / name).write_text(json.dumps(content))
    with pytest.raises(InputError, match=message):
        Tokenizer.load(tmp_path)


@pytest.mark.parametrize("tokenizer_class", [None, "BertTokenizer", "ElectraTokenizerFast"])
def test_special_tokens_may_be_listed_as_added(tmp_path, tokenizer_class):
    write_vocabulary(tmp_path / "vocab.txt", VOCABULARY)
    config = {"tokenizer_class": tokenizer_class, "added_tokens_decoder": SPECIAL_DECODER}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    (tmp_path / "added_tokens.json").write_text('{"[MASK]": 4}')
    assert Tokenizer.load(tmp_path).vocabulary == VOCABULARY


def test_what_a_tokenizer_json_does_it_says_itself_whatever_its_class(tmp_path):
    save_without_manifest(Tokenizer(VOCABULARY), tmp_path)
    path = tmp_path / "tokenizer_config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**config, "tokenizer_class": "PreTrainedTokenizerFast"}))
    assert Tokenizer.load(tmp_path).vocabulary == VOCABULARY


def test_two_vocabularies_must_agree(tmp_path):
    save_without_manifest(Tokenizer(VOCABULARY), tmp_path)
    write_vocabulary(tmp_path / "vocab.txt", (*SPECIAL_TOKENS, *VOCABULARY[:4:-1]))
    with pytest.raises(InputError, match=r"vocab\.txt and tokenizer\.json have different entries"):
        Tokenizer.load(tmp_path)


def test_an_early_tokenizer_json_names_no_model_type(tmp_path):
    save_without_manifest(Tokenizer(VOCABULARY), tmp_path)
    path = tmp_path / "tokenizer.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    del content["model"]["type"], content["added_tokens"]
    path.write_text(json.dumps(content))
    assert Tokenizer.load(tmp_path).vocabulary == VOCABULARY


@pytest.mark.parametrize(
    ("entries", "is_cased"),
    [
        (("the", "##s", "The"), True),
        (("the", "##S", "##ING"), True),
        (("the", "A", "B", "##C", "<S>", "[TIME]", "[unused1]", "ℝℝ", "ß"), False),
        (("the", "Überall"), True),
        ((*(f"word{chr(97 + n % 26)}{n}" for n in range(200)), "Added"), False),
    ],
)
def test_a_vocabulary_without_switches_is_cased_where_its_words_have_capitals(
    tmp_path, entries, is_cased
):
    path = write_vocabulary(tmp_path / "vocab.txt", (*SPECIAL_TOKENS, *entries))
    for source in (tmp_path, path):
        settings = Tokenizer.load(source).settings
        assert (settings.lowercase, settings.strip_accents) == (not is_cased, not is_cased)
        assert settings.split_cjk


def test_what_is_written_about_the_switches_wins_over_what_the_vocabulary_shows(tmp_path):
    write_vocabulary(tmp_path / "vocab.txt", (*SPECIAL_TOKENS, "The"))
    (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    assert Tokenizer.load(tmp_path).settings == TokenizerSettings()
