"""Folders whose `tokenizer.json` of Unigram or byte-level BPE is broken or hostile."""

import base64
import copy
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

from tests.charsmaps import build_charsmap
from tests.hostile.case import Case, Defects, make_cases
from tests.hostile.whole import folder_with, to_json
from tests.tokenizer_folders import KINDS

from bertkit.base.errors import DamagedFileError, InputError

Content = dict[str, Any]
MILLION = 1_000_000


def cases() -> Iterator[Case]:
    """All of them."""
    parts = (_tables, _merges, _normalizers, _charsmaps, _pre_tokenizers, _templates, _added)
    for part in parts:
        yield from make_cases(part(), folder_with)


@cache
def _layout(kind: str) -> Content:
    return KINDS[kind]()[0]


def _edited(kind: str, *edits: Callable[[Content], object]) -> Iterator[dict[str, bytes | None]]:
    """Folders with the tokenizer of a kind, each changed otherwise."""
    for edit in edits:
        content = copy.deepcopy(_layout(kind))
        edit(content)
        yield {"tokenizer.json": to_json(content), "vocab.txt": None, "tokenizer_config.json": None}


def _setting(part: str, **values: object) -> Callable[[Content], object]:
    def edit(content: Content) -> None:
        content[part] = {**(content[part] or {}), **values}

    return edit


def _being(part: str, value: object) -> Callable[[Content], object]:
    def edit(content: Content) -> None:
        content[part] = value

    return edit


def _tables() -> Defects:
    scores = _layout("xlm-roberta")["model"]["vocab"]
    many = [[f"x{number}", -1.0] for number in range(MILLION)]
    return {
        (
            "Unigram table of a million pieces",
            DamagedFileError,
            "at most 1,048,576 are read",
        ): _edited("xlm-roberta", _setting("model", vocab=many)),
        ("Unigram table that isn't one", InputError, "must list pieces with their scores"): _edited(
            "xlm-roberta",
            *(
                _setting("model", vocab=value)
                for value in (None, {}, 5, [5], [["a"]], [["a", "b"]], [["a", None]], [[1, 1]])
            ),
        ),
        ("Unigram table with a piece twice", InputError, "twice, as entries"): _edited(
            "xlm-roberta", _setting("model", vocab=[*scores, ["<s>", -1.0]])
        ),
        ("Unigram table with pieces of megabytes", InputError, "characters long"): _edited(
            "xlm-roberta", _setting("model", vocab=[*scores, ["x" * (4 << 20), -1.0]])
        ),
        ("unknown piece that isn't in the table", InputError, "unk_id must be"): _edited(
            "xlm-roberta",
            *(_setting("model", unk_id=value) for value in (None, -1, 1 << 40, True, "3", [3])),
        ),
        ("Unigram that falls back to bytes", InputError, "model.byte_fallback must be"): _edited(
            "xlm-roberta", _setting("model", byte_fallback=True)
        ),
        ("byte-level BPE without a byte", InputError, "which is a byte"): _edited(
            "roberta", _setting("model", vocab={"<s>": 0, "a": 1})
        ),
        ("BPE table that isn't one", InputError, "model.vocab must map|without a gap"): _edited(
            "roberta",
            *(_setting("model", vocab=value) for value in (None, [], 5, {"a": "b"}, {"a": 1})),
        ),
        ("BPE of another kind", InputError, "model.(dropout|end_of|contin|ignore|byte)"): _edited(
            "roberta",
            _setting("model", dropout=0.5),
            _setting("model", end_of_word_suffix="</w>"),
            _setting("model", continuing_subword_prefix="@@"),
            _setting("model", ignore_merges=True),
            _setting("model", byte_fallback=True),
        ),
        ("model with settings of the future", InputError, "doesn't know 'more'"): (
            files
            for kind in ("roberta", "xlm-roberta")
            for files in _edited(kind, _setting("model", more=1))
        ),
    }


def _merges() -> Defects:
    return {
        ("more merges than any BPE has", InputError, "at most 1,000,000"): _edited(
            "roberta", _setting("model", merges=["a b"] * (MILLION + 1))
        ),
        ("merges that aren't", InputError, "model.merges must|isn't of two entries"): _edited(
            "roberta",
            *(
                _setting("model", merges=value)
                for value in (None, {}, 5, [5], [["a"]], ["a b c"], ["a"], [["a", 1]], [[]])
            ),
        ),
        ("merges of what is no entry", InputError, "isn't of two entries to a third"): _edited(
            "roberta", _setting("model", merges=["a 中"]), _setting("model", merges=[["Q", "Z"]])
        ),
    }


def _normalizers() -> Defects:
    step: Content = {"type": "NFC"}
    nested = step
    for _ in range(50):
        nested = {"type": "Sequence", "normalizers": [nested]}
    evil = {"type": "Replace", "pattern": {"Regex": "(a+)+$"}, "content": " "}
    return {
        ("normalizers nested deep", InputError, "the normalizer is 'Sequence'"): _edited(
            "bge-m3", _being("normalizer", nested)
        ),
        ("normalizers without end", InputError, "at most 8 steps"): _edited(
            "bge-m3",
            _being("normalizer", {"type": "Sequence", "normalizers": [step] * 10_000}),
            _being("normalizer", {"type": "Sequence", "normalizers": step}),
        ),
        ("regular expression of its own", InputError, "normalizer.pattern must be"): _edited(
            "bge-m3",
            _being("normalizer", evil),
            _being("normalizer", {**evil, "pattern": {"Regex": "x{1000000000}"}}),
            _being("normalizer", {**evil, "pattern": {"String": "a"}}),
            _being("normalizer", {"type": "Sequence", "normalizers": [evil]}),
        ),
        ("replacement that grows", InputError, "normalizer.content must be"): _edited(
            "bge-m3",
            _being("normalizer", {**evil, "pattern": {"Regex": " {2,}"}, "content": "x" * 9999}),
        ),
        ("normalizer of another kind", InputError, "the normalizer is"): _edited(
            "roberta",
            *(
                _being("normalizer", value)
                for value in (
                    {"type": "Prepend", "prepend": "x"},
                    {"type": 5},
                    {},
                    5,
                    "NFC",
                    [step],
                )
            ),
        ),
    }


def _charsmaps() -> Defects:
    whole = build_charsmap({"a": "b", "é": "e"})
    size = int.from_bytes(whole[:4], "little")

    def of(table: object) -> Callable[[Content], object]:
        text = base64.b64encode(table).decode() if isinstance(table, bytes) else table
        return _being("normalizer", {"type": "Precompiled", "precompiled_charsmap": text})

    def with_units(value: int) -> bytes:
        return whole[:4] + value.to_bytes(4, "little") * (size // 4) + whole[4 + size :]

    return {
        ("charsmap that isn't base64", InputError, "precompiled_charsmap"): _edited(
            "xlm-roberta", *map(of, (None, 5, [], "é", "a", "====", "A" * (8 << 20)))
        ),
        ("charsmap that is cut short", InputError, "precompiled_charsmap"): _edited(
            "xlm-roberta",
            *(of(whole[:stop]) for stop in (0, 3, 4, 5, size, size + 3)),
            of((1 << 31).to_bytes(4, "little") + whole[4:]),
            of(bytes(4) + whole[4:]),
        ),
        ("charsmap that points beyond its end", InputError, "points (beyond|into)"): _edited(
            "xlm-roberta",
            *(of(with_units(value)) for value in (0xFFFFFF61, 0x7FFFFD61, 0x80000161)),
            of(whole[: 4 + size]),
        ),
        ("charsmap with a long replacement", InputError, "replacement of more than 256"): _edited(
            "xlm-roberta", of(build_charsmap({"a": "x" * 257})), of(whole + b"y" * (1 << 20))
        ),
        ("charsmap whose replacements aren't UTF-8", InputError, "precompiled_charsmap"): _edited(
            "xlm-roberta", of(whole + b"\xff\x00")
        ),
    }


def _pre_tokenizers() -> Defects:
    split = {"type": "Split", "pattern": {"Regex": "(a+)+$"}, "behavior": "Isolated"}
    metaspace = {"type": "Metaspace", "replacement": "▁"}
    space = {"type": "WhitespaceSplit"}
    return {
        ("pre-tokenizer of another kind", InputError, "the pre_tokenizer is"): _edited(
            "roberta",
            *(_being("pre_tokenizer", value) for value in (None, split, space, [split], 5)),
            _being("pre_tokenizer", {"type": "Sequence", "pretokenizers": [split]}),
        ),
        ("words that aren't GPT-2's", InputError, "pre_tokenizer.use_regex must be True"): _edited(
            "roberta", _setting("pre_tokenizer", use_regex=False)
        ),
        ("blanks by another sign", InputError, "pre_tokenizer.(repl|prep|split)"): _edited(
            "bge-m3",
            _being("pre_tokenizer", {**metaspace, "replacement": "_"}),
            _being("pre_tokenizer", {**metaspace, "prepend_scheme": "never"}),
            _being("pre_tokenizer", {**metaspace, "split": False}),
        ),
        ("pre-tokenizers in another order", InputError, "pretokenizers must be"): _edited(
            "xlm-roberta",
            *(
                _being("pre_tokenizer", {"type": "Sequence", "pretokenizers": value})
                for value in ([], None, [metaspace, space], [space] * 1000, [space], {"a": space})
            ),
        ),
    }


def _templates() -> Defects:
    def of(single: object, pair: object) -> Callable[[Content], object]:
        return _setting("post_processor", type="TemplateProcessing", single=single, pair=pair)

    def special(token: object, type_: object = 0) -> Content:
        return {"SpecialToken": {"id": token, "type_id": type_}}

    a, b = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    first, last = special("<s>"), special("</s>")
    pair = [first, a, last, b, last]
    return {
        ("template without its texts", InputError, "must have A|must list tokens"): _edited(
            "xlm-roberta",
            of([first, last], pair),
            of([first, a, last], [first, a, last]),
            of([first, a, a, last], pair),
            of([first, b, last], pair),
            of(None, pair),
            of([5], pair),
            of([{}], pair),
            of([special(5), a, last], pair),
            of([special("<s>", 7), a, last], pair),
            of([special("<s>", True), a, last], pair),
        ),
        ("template with many tokens", InputError, "at most 4"): _edited(
            "xlm-roberta", of([first] * 10_000 + [a, last], pair), of([a, last], pair)
        ),
        ("template with tokens that aren't entries", InputError, "which is no entry"): _edited(
            "xlm-roberta", of([special("<none>"), a, last], pair)
        ),
        ("template of two types in a place", InputError, "must have one type_id"): _edited(
            "xlm-roberta", of([first, a, last], [first, a, last, special("</s>", 1), b, last])
        ),
        ("post-processor of another kind", InputError, "the post_processor is"): _edited(
            "roberta",
            *(_being("post_processor", value) for value in (None, 5, {"type": "ByteLevel"}, [])),
        ),
        ("post-processor without tokens", InputError, "must be a token and its id"): _edited(
            "roberta", *(_setting("post_processor", sep=value) for value in (None, [], ["a"], "ab"))
        ),
    }


def _added() -> Defects:
    def of(**values: object) -> Callable[[Content], object]:
        def edit(content: Content) -> None:
            content["added_tokens"].append({"id": 5, "content": "x", **values})

        return edit

    def without(name: str) -> Callable[[Content], object]:
        def edit(content: Content) -> None:
            content["model"]["vocab"] = [
                pair if pair[0] != name else ["other", 0.0] for pair in content["model"]["vocab"]
            ]
            content["added_tokens"] = [
                one for one in content["added_tokens"] if one["content"] != name
            ]

        return edit

    return {
        ("added tokens that aren't", InputError, "added.token"): _edited(
            "roberta",
            *(_being("added_tokens", value) for value in (5, [5], [{}], {"a": 1}, [None], "x")),
            of(content=None),
            of(content=""),
            of(id="5"),
            of(lstrip=1),
        ),
        ("added tokens that aren't the entries they say", InputError, "isn't entry"): _edited(
            "roberta", of(content="new", id=1 << 40), of(content="a", id=1), of(content="new", id=2)
        ),
        ("added tokens beside a Unigram table", InputError, "isn't in the table"): _edited(
            "xlm-roberta", of(content="new", id=len(_layout("xlm-roberta")["model"]["vocab"]))
        ),
        ("tokenizer without a mask", InputError, "no entry is the mask token"): _edited(
            "xlm-roberta", without("<mask>")
        ),
        ("tokenizer without padding", InputError, "no entry is the pad token"): _edited(
            "xlm-roberta", without("<pad>")
        ),
    }
