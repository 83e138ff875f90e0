"""Model folders whose config, index, vocabulary or links are broken or hostile."""

import copy
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from tests.hostile.case import Case, number_cases
from tests.hostile.whole import (
    CONFIG,
    INDEX,
    VOCABULARY,
    WEIGHTS,
    folder_with,
    join,
    tensors,
    to_json,
    tokenizer_json,
    vocabulary_file,
    weights_file,
    whole_files,
)

from bertkit.base.errors import (
    BertkitError,
    CheckpointError,
    DamagedFileError,
    InputError,
    MissingFileError,
    UnsafeFileError,
)

HUGE = 1 << 24  # the largest size that a config may name
SHARDS = ("a.safetensors", "b.safetensors")


def cases() -> Iterator[Case]:
    """All of them."""
    for part in (_json_files, _config_values, _index, _endless_index, _index_names, _vocabulary):
        yield from part()
    for part in (_tokenizer, _links, _hub_cache, _no_files, _pipes, _runs):
        yield from part()


def _make(
    defect: str,
    changes: Iterable[Mapping[str, bytes | None]],
    error: type[BertkitError] | None,
    match: str,
) -> Iterator[Case]:
    return number_cases(defect, map(folder_with, changes), error, match)


def _config(*changes: Mapping[str, Any]) -> Iterator[dict[str, bytes]]:
    """Folders in whose config some keys were changed."""
    return ({"config.json": to_json({**CONFIG, **change})} for change in changes)


def _json_files() -> Iterator[Case]:
    """Damaged JSON in each of the files that a folder has, which one function reads."""
    names = ("config.json", "tokenizer.json", "tokenizer_config.json", INDEX)
    for damage, text, match in (
        ("is cut short", b'{"x": ', "isn't JSON"),
        ("is followed by more", b"{}{}", "isn't JSON"),
        ("has a number of 5,000 digits", b'{"x": ' + b"9" * 5000 + b"}", "isn't JSON"),
        ("is in another encoding", "{}".encode("utf-16"), "isn't UTF-8"),
        ("is nested deep", b'{"x":' * 100_000 + b"1" + b"}" * 100_000, "maximum recursion"),
        ("has a key twice", b'{"x": {"y": 1, "y": 2}}', "appears twice"),
    ):
        folders = ({**(_shards() if name == INDEX else {}), name: text} for name in names)
        yield from _make(f"JSON that {damage}", folders, DamagedFileError, match)
    good = to_json(CONFIG)
    yield from _make(
        "config with a byte order mark", [{"config.json": b"\xef\xbb\xbf" + good}], None, ""
    )
    yield from _make(
        "config not an object",
        ({"config.json": text} for text in (b"[]", b"null", b"1", b'"bert"', b"[{}]")),
        DamagedFileError,
        "config.json must hold one JSON object",
    )
    yield from _make(
        "config larger than any",
        ({"config.json": good.ljust(size)} for size in ((16 << 20) + 1, 64 << 20)),
        DamagedFileError,
        "has more than 16,777,216 bytes",
    )


def _config_values() -> Iterator[Case]:
    giant = {"hidden_size": HUGE, "intermediate_size": HUGE, "num_hidden_layers": 256}
    yield from _make(
        "config of huge sizes",
        _config(
            giant,
            {"hidden_size": HUGE},
            {"num_hidden_layers": 256},
            {"vocab_size": HUGE},
            {"intermediate_size": HUGE},
            {"max_position_embeddings": HUGE},
            {"type_vocab_size": HUGE},
            {
                **giant,
                "vocab_size": HUGE,
                "max_position_embeddings": HUGE,
                "num_attention_heads": HUGE,
            },
            {**giant, "architectures": ["BertModel"]},
        ),
        CheckpointError,
        "(and must be|missing)",
    )
    yield from _make(
        "config of huge sizes without weights",
        (
            {"config.json": to_json({**CONFIG, **change}), WEIGHTS: None}
            for change in (giant, {**giant, "architectures": ["BertModel"]})
        ),
        MissingFileError,
        "has no model.safetensors",
    )
    sizes = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads")
    yield from _make(
        "config with sizes out of range",
        _config(
            *({name: value} for name in sizes for value in (0, -1, HUGE + 1, 10**400)),
        ),
        CheckpointError,
        "(greater|less) than or equal to|has 40",
    )
    wrong: tuple[object, ...] = (None, [8], {"x": 8}, "eight", 8.5, "")
    yield from _make(
        "config with sizes that are no numbers",
        _config(*({"hidden_size": value} for value in wrong)),
        CheckpointError,
        "hidden_size",
    )
    for name in ("hidden_size", "hidden_dropout_prob", "a_key_of_others"):
        yield from _make(
            "config with numbers that JSON doesn't know",
            _config({name: float("nan")}, {name: float("-inf")}, {name: {"x": [float("inf")]}}),
            DamagedFileError,
            "isn't a JSON number",
        )
    activations = ("", "Gelu", "swish9", "__import__('os').system('true')", "eval", 5, None, [])
    yield from _make(
        "config with an unknown activation",
        _config(*({"hidden_act": name} for name in activations)),
        CheckpointError,
        "(unknown activation|hidden_act)",
    )
    kinds = ("roberta", "gpt2", "", "BERT", None, 5, ["bert"])
    yield from _make(
        "config of another model type",
        _config(*({"model_type": kind} for kind in kinds)),
        CheckpointError,
        "(model_type|runs BERT only)",
    )
    yield from _make(
        "config that reads left to right",
        _config(
            {"is_decoder": True},
            {"is_decoder": True, "architectures": ["BertModel"]},
            {"is_decoder": True, "architectures": ["BertForMaskedLM"]},
        ),
        CheckpointError,
        r"reads left to right \(is_decoder\)",
    )
    causal = {"architectures": ["BertLMHeadModel"]}
    yield from _make("left-to-right model", _config({**causal, "is_decoder": True}), None, "")
    yield from _make(
        "left-to-right model whose config doesn't say so",
        _config(*({**causal, "is_decoder": value} for value in (False, None, 1, "true", [True]))),
        CheckpointError,
        "is_decoder",
    )
    yield from _make(
        "config that is defined by code of its own",
        _config({"auto_map": {"AutoModel": "../evil.Evil"}, "trust_remote_code": True}),
        CheckpointError,
        "isn't supported: bertkit's BERT",
    )
    yield from _make(
        "config that asks for remote code",
        _config(
            {"trust_remote_code": True},
            {"custom_pipelines": {"x": {"impl": "evil.Evil"}}},
            {"_name_or_path": "/etc/passwd"},
        ),
        None,
        "",
    )


def _shards(
    places: Mapping[str, str] | None = None, **more: bytes | None
) -> dict[str, bytes | None]:
    """A folder with its weights in two files, and an index."""
    if places is None:
        places = true_places()
    index = to_json({"metadata": {}, "weight_map": places})
    return {WEIGHTS: None, INDEX: index, **shards(), **more}


def shards() -> dict[str, bytes]:
    """The two files."""
    weights = tensors()
    names = list(weights)
    halves = (names[: len(names) // 2], names[len(names) // 2 :])
    return {
        file: weights_file({name: weights[name] for name in half})
        for file, half in zip(SHARDS, halves, strict=True)
    }


def true_places() -> dict[str, str]:
    """Which of the two files holds which tensor."""
    names = list(tensors())
    return {name: SHARDS[number >= len(names) // 2] for number, name in enumerate(names)}


def _index() -> Iterator[Case]:
    yield from _make("weights in two files", [_shards()], None, "")
    wrong: tuple[object, ...] = ([], 5, {}, {"weight_map": []}, {"weight_map": {"a": 5}})
    more: tuple[object, ...] = ({"weight_map": {"a": None}}, {"weight_map": {"a": ["x"]}}, None)
    yield from _make(
        "index without a map",
        ({**_shards(), INDEX: to_json(content)} for content in (*wrong, *more)),
        DamagedFileError,
        "must have a weight_map from tensors to files",
    )
    yield from _make(
        "index larger than any",
        ({**_shards(), INDEX: b"{}".ljust((16 << 20) + more)} for more in (1, 1 << 20)),
        DamagedFileError,
        "has more than 16,777,216 bytes",
    )
    names = list(tensors())
    changed = [{**true_places(), name: SHARDS[0]} for name in names[-3:]]
    changed += [{name: file for name, file in true_places().items() if name != names[0]}]
    changed += [{**true_places(), "bert.more": SHARDS[0]}, {**true_places(), "\x1b[2J": SHARDS[1]}]
    yield from _make(
        "index and files disagree",
        (_shards(places) for places in changed),
        DamagedFileError,
        "and its files disagree on where",
    )
    whole = weights_file()
    yield from _make(
        "one tensor in two files",
        (_shards(**{name: whole}) for name in SHARDS),
        CheckpointError,
        "both hold",
    )
    many = {f"t{number}": f"{number}.safetensors" for number in range(101)}
    yield from _make(
        "index of too many files",
        [_shards(many)],
        UnsafeFileError,
        "101 files; at most 20,000 in 100 may be",
    )
    yield from _make(
        "index names a missing file",
        (
            _shards({**true_places(), "bert.more": name})
            for name in ("c.safetensors", "a", "sub/c.safetensors", "a.safetensors/b", ".")
        ),
        MissingFileError,
        "doesn't exist",
    )
    yield from _make(
        "index names a file of another kind",
        (
            _shards({**true_places(), "bert.more": name})
            for name in ("config.json", "vocab.txt", INDEX)
        ),
        DamagedFileError,
        "isn't a whole safetensors file",
    )


def _endless_index() -> Iterator[Case]:
    """Indexes that would have far more read than the model has."""
    empty = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    files = {INDEX: to_json({"weight_map": {f"x{n}": f"s{n}.safetensors" for n in range(90)}})}
    links = {f"s{n}.safetensors": "spaces.safetensors" for n in range(90)}
    spaces = {"spaces.safetensors": join(b"{}".ljust(4 << 20), b"")}
    match = "names one file by several names"
    folder = folder_with({WEIGHTS: None, **files, **spaces})
    yield Case("index of one file many times", 0, folder, UnsafeFileError, match, links)
    endless: dict[str, bytes | None] = {
        f"s{n}.safetensors": join({f"s{n}_{k}": empty for k in range(18_000)}, b"")
        for n in range(20)
    }
    places = {f"x{n}": f"s{n}.safetensors" for n in range(20)}
    many = {f"x{n}": "s0.safetensors" for n in range(20_001)}
    for number, (index, error, match) in enumerate(
        ((places, DamagedFileError, "disagree on where"), (many, UnsafeFileError, "at most 20,000"))
    ):
        text = to_json({"weight_map": index})
        folder = folder_with({WEIGHTS: None, INDEX: text, **endless})
        yield Case("index of files with endless headers", number, folder, error, match)


def _index_names() -> Iterator[Case]:
    names = (
        "../outside/model.safetensors",
        "../model.safetensors",
        "sub/../../outside/model.safetensors",
        "..",
        "/etc/passwd",
        "/dev/zero",
        "//server/share",
        "C:\\weights",
        "C:weights",
        "..\\weights",
        "a\0.safetensors",
        "a\n.safetensors",
        "\x1b[2J",
        "",
        "x" * 256,
        "x/" * 500 + "x",
        "file:///etc/passwd",
        "https://example.org/x",
    )
    yield from _make(
        "index names a path outside",
        (_shards({**true_places(), "bert.more": name}) for name in names),
        UnsafeFileError,
        "as one of its files; expected a name inside the folder",
    )
    for number, target in enumerate(("{outside}", "/", "..", "/proc/self")):
        files = folder_with(_shards({**true_places(), "bert.more": "sub/model.safetensors"}))
        is_there = target == "{outside}"
        error = UnsafeFileError if is_there else MissingFileError
        match = "is a link that leads out" if is_there else "doesn't exist"
        yield Case(
            "index names a file behind a linked folder",
            number,
            files,
            error,
            match,
            {"sub": target},
        )


def _vocabulary() -> Iterator[Case]:
    def files(*vocabularies: tuple[str, ...] | bytes) -> Iterator[dict[str, bytes | None]]:
        for entries in vocabularies:
            text = entries if isinstance(entries, bytes) else vocabulary_file(entries)
            yield {"vocab.txt": text, "tokenizer.json": None}

    good = vocabulary_file()
    yield from _make(
        "vocabulary of two million entries",
        files(good + b"".join(b"x%d\n" % number for number in range(2_000_000)), b"\n" * 2_000_000),
        InputError,
        "entries; at most 1,000,000",
    )
    yield from _make(
        "vocabulary with entries of megabytes",
        files(
            good + b"x" * (10 << 20), good + b"x" * 1001, good + b"\n".join([b"y" * (4 << 20)] * 7)
        ),
        InputError,
        "characters long; at most 1,000",
    )
    wide = "\U0001f600\n".encode()  # makes each character of the text take four bytes
    lines = b"".join(b"%075d\n" % number for number in range(400_000))
    yield from _make(
        "vocabulary that is wide in memory",
        files(lines + wide, b"x" * (31 << 20) + wide),
        InputError,
        "lacks|characters long",
    )
    yield from _make(
        "vocabulary larger than any",
        files(good + b"x" * (32 << 20)),
        DamagedFileError,
        "has more than 33,554,432 bytes",
    )
    yield from _make(
        "vocabulary in another encoding",
        files(*(good + more for more in (b"\xff\n", b"\xe9\n", b"\xed\xa0\x80\n", b"\xc0\xaf\n"))),
        DamagedFileError,
        "vocab.txt isn't UTF-8",
    )
    yield from _make(
        "vocabulary with a byte order mark",
        files(b"\xef\xbb\xbf" + good),
        None,
        "",
    )
    yield from _make(
        "vocabulary larger than the embedding",
        files((*VOCABULARY, "more"), (*VOCABULARY, *map(str, range(1000)))),
        CheckpointError,
        "don't match",
    )
    yield from _make(
        "vocabulary smaller than the embedding", files(VOCABULARY[:-1], VOCABULARY[:5]), None, ""
    )


def _tokenizer() -> Iterator[Case]:
    def edited(*edits: Callable[[dict[str, Any]], object]) -> Iterator[dict[str, bytes | None]]:
        for edit in edits:
            content = copy.deepcopy(tokenizer_json())
            edit(content)
            yield {"tokenizer.json": to_json(content), "vocab.txt": None}

    def setting(*keys: str, value: object) -> Callable[[dict[str, Any]], object]:
        def edit(content: dict[str, Any]) -> None:
            for key in keys[:-1]:
                content = content[key]
            content[keys[-1]] = value

        return edit

    vocabulary = tokenizer_json()["model"]["vocab"]
    yield from _make("tokenizer.json alone", edited(lambda content: None), None, "")
    yield from _make(
        "tokenizer of another algorithm",
        edited(
            setting("model", "type", value=5),
            setting("model", "max_input_chars_per_word", value=1 << 62),
            setting("model", "vocab", value={**vocabulary, "z": 1 << 62}),
            setting("model", "vocab", value=[["a", 0]]),
            *(setting(part, value=[]) for part in ("model", "normalizer", "pre_tokenizer")),
            *(setting("added_tokens", value=value) for value in ([5], "x", [{}], [None])),
        ),
        InputError,
        "tokenizer.json",
    )
    yield from _make(
        "tokenizer larger than any",
        [{"tokenizer.json": b"{}".ljust((32 << 20) + 1)}],
        DamagedFileError,
        "has more than 33,554,432 bytes",
    )
    yield from _make(
        "tokenizer config with switches that aren't",
        (
            {"tokenizer_config.json": to_json({name: value})}
            for name in ("do_lower_case", "strip_accents", "tokenize_chinese_chars")
            for value in ("true", 1, [], {})
        ),
        InputError,
        "must be true or false",
    )
    yield from _make(
        "tokenizer config that asks for remote code",
        [
            {
                "tokenizer_config.json": to_json(
                    {"auto_map": {"AutoTokenizer": ["evil.Evil", None]}}
                )
            },
            {"tokenizer_config.json": to_json({"tokenizer_class": "evil.Evil", "x": "$(true)"})},
        ],
        None,
        "",
    )


def _links() -> Iterator[Case]:
    names = ("config.json", WEIGHTS, "vocab.txt", "tokenizer.json", "tokenizer_config.json")
    for number, name in enumerate(names):
        yield Case(
            "file that is a link out of the folder",
            number,
            folder_with({name: None}),
            UnsafeFileError,
            "is a link that leads out of its folder",
            {name: f"{{outside}}/{name}"},
        )
    devices = (
        "/dev/zero",
        "/dev/urandom",
        "/dev/null",
        "/proc/self/mem",
        "/proc/kmsg",
        "/dev/tty",
    )
    for number, target in enumerate(devices):
        yield Case(
            "weights that are a link to a device",
            number,
            folder_with({WEIGHTS: None}),
            UnsafeFileError,
            "is a link that leads out",
            {WEIGHTS: target},
        )
    for number, target in enumerate((WEIGHTS, "x", "missing")):
        links = {WEIGHTS: target, "x": WEIGHTS} if target == "x" else {WEIGHTS: target}
        yield Case(
            "link in a circle or to nothing",
            number,
            folder_with({WEIGHTS: None}),
            MissingFileError,
            "doesn't exist",
            links,
        )
    yield Case(
        "link inside the folder",
        0,
        {**folder_with({WEIGHTS: None}), "sub/real.safetensors": weights_file()},
        None,
        "",
        {WEIGHTS: "sub/real.safetensors"},
    )


def _hub_cache() -> Iterator[Case]:
    """A snapshot in the Hub's cache is made of links to blobs beside it."""
    snapshot, blobs = "models--a--b/snapshots/0123", "models--a--b/blobs"
    files = {f"{blobs}/{name}": content for name, content in whole_files().items()}
    links = {f"{snapshot}/{name}": f"../../blobs/{name}" for name in whole_files()}
    yield Case("snapshot in the Hub's cache", 0, files, None, "", links, opened=snapshot)
    shared = {f"blobs/{name}": content for name, content in whole_files().items()}
    upper = {name: f"../../../blobs/{name.rpartition('/')[2]}" for name in links}
    yield Case("snapshot in the Hub's cache", 1, shared, None, "", upper, opened=snapshot)
    names = ("secret", "models--c--d/blobs/x", "models--a--b/refs/x", "models--a--b/snapshots/4/x")
    for number, name in enumerate(names):
        stolen = {**links, f"{snapshot}/{WEIGHTS}": f"../../../{name}"}
        yield Case(
            "snapshot whose link leads elsewhere",
            number,
            {**files, name: weights_file()},
            UnsafeFileError,
            "is a link that leads out of its folder",
            stolen,
            opened=snapshot,
        )
    false = "snapshots/0123"  # not the cache's layout
    yield Case(
        "snapshot whose link leads elsewhere",
        len(names),
        {f"blobs/{name}": content for name, content in whole_files().items()},
        UnsafeFileError,
        "is a link that leads out of its folder",
        {f"{false}/{name}": f"../../blobs/{name}" for name in whole_files()},
        opened=false,
    )


def _no_files() -> Iterator[Case]:
    missing = {"config.json": "is no model folder", WEIGHTS: "has no model.safetensors"}
    for number, (name, match) in enumerate(missing.items()):
        files = folder_with({name: None})
        yield Case("file that isn't there", number, files, MissingFileError, match)
        yield Case(
            "named pipe in place of a file", number, files, MissingFileError, match, pipes=(name,)
        )
        yield Case(
            "folder in place of a file", number, files, MissingFileError, match, folders=(name,)
        )
    for number, name in enumerate(("vocab.txt", "tokenizer.json"), start=2):
        files = folder_with({"vocab.txt": None, "tokenizer.json": None})
        match = "has neither vocab.txt nor tokenizer.json"
        kind = "in place of a file"
        yield Case(f"named pipe {kind}", number, files, MissingFileError, match, pipes=(name,))
        yield Case(f"folder {kind}", number, files, MissingFileError, match, folders=(name,))
    files = folder_with({**_shards(), SHARDS[0]: None})
    yield Case(
        "named pipe in place of a file", 4, files, MissingFileError, "exist", pipes=SHARDS[:1]
    )
    yield Case("folder in place of a file", 4, files, MissingFileError, "exist", folders=SHARDS[:1])
    yield Case("folder without anything", 0, {}, MissingFileError, "is no model", folders=("x",))


def _pipes() -> Iterator[Case]:
    """Pipes, to which nobody writes, wherever a folder has made sure of being read."""
    kind = "named pipe in place of a file"
    for number, (name, path) in enumerate((("config.json", "sub"), ("bert_config.json", "")), 5):
        modules = [{"name": "0", "path": path, "type": "sentence_transformers.models.Transformer"}]
        files = {"sub/vocab.txt": b""} if path else {"bert_model.ckpt.index": b""}
        files |= {"modules.json": to_json(modules)} if path else {}
        pipe = f"{path}/{name}" if path else name
        yield Case(kind, number, files, MissingFileError, "isn't a file", pipes=(pipe,))
    checkpoint = "checkpoints/step-00000001"
    files = {f"{checkpoint}/config.json": to_json(CONFIG)}
    pipes = (f"{checkpoint}/manifest.json",)
    yield Case(kind, 7, files, DamagedFileError, "must be a file", pipes=pipes)
    for number, name in enumerate(("config.json", WEIGHTS, "vocab.txt", "tokenizer_config.json")):
        files = folder_with({name: None})
        links = {name: "nowhere"}
        yield Case("link that leads nowhere", number, files, MissingFileError, "exist", links)


def _runs() -> Iterator[Case]:
    """What looks like a run of bertkit's own, and isn't."""
    yield Case(
        "run without checkpoint",
        0,
        {"settings.json": b"{}"},
        MissingFileError,
        "has no checkpoint yet",
    )
    yield Case(
        "run without checkpoint",
        1,
        {},
        MissingFileError,
        "has no checkpoint yet",
        folders=("checkpoints",),
    )
    seals = (b"", b"{}", b"{" * 100_000, json.dumps({"format_version": 2, "files": {}}).encode())
    for number, text in enumerate(seals):
        yield Case(
            "checkpoint whose manifest has no seal",
            number,
            folder_with({"manifest.json": text}),
            DamagedFileError,
            "doesn't end with its SHA-256",
        )
