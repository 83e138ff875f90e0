"""Model folders whose config, index, vocabulary or links are broken or hostile."""

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.hostile.case import Case, Defects, make_cases
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
    for part in (_json_files, _config_values, _index, _index_names, _vocabulary, _tokenizer):
        yield from make_cases(part(), folder_with)
    for part in (_endless_index, _linked_folders, _links, _hub_cache, _no_files, _pipes, _runs):
        yield from part()


def _config(*changes: Mapping[str, Any]) -> Iterator[dict[str, bytes]]:
    """Folders in whose config some keys were changed."""
    return ({"config.json": to_json({**CONFIG, **change})} for change in changes)


def _json_files() -> Defects:
    """Damaged JSON in each of the files that a folder has, which one function reads."""
    names = ("config.json", "tokenizer.json", "tokenizer_config.json", INDEX)
    damaged: Defects = {
        (f"JSON that {damage}", DamagedFileError, match): [
            {**(_shards() if name == INDEX else {}), name: text} for name in names
        ]
        for damage, text, match in (
            ("is cut short", b'{"x": ', "isn't JSON"),
            ("is followed by more", b"{}{}", "isn't JSON"),
            ("has a number of 5,000 digits", b'{"x": ' + b"9" * 5000 + b"}", "isn't JSON"),
            ("is in another encoding", "{}".encode("utf-16"), "isn't UTF-8"),
            ("is nested deep", b'{"x":' * 100_000 + b"1" + b"}" * 100_000, "maximum recursion"),
            ("has a key twice", b'{"x": {"y": 1, "y": 2}}', "appears twice"),
        )
    }
    good = to_json(CONFIG)
    return damaged | {
        ("config with a byte order mark", None, ""): [{"config.json": b"\xef\xbb\xbf" + good}],
        ("config not an object", DamagedFileError, "config.json must hold one JSON object"): (
            {"config.json": text} for text in (b"[]", b"null", b"1", b'"bert"', b"[{}]")
        ),
        ("config larger than any", DamagedFileError, "has more than 16,777,216 bytes"): (
            {"config.json": good.ljust(size)} for size in ((16 << 20) + 1, 64 << 20)
        ),
    }


def _config_values() -> Defects:
    giant = {"hidden_size": HUGE, "intermediate_size": HUGE, "num_hidden_layers": 256}
    sizes = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads")
    wrong: tuple[object, ...] = (None, [8], {"x": 8}, "eight", 8.5, "")
    activations = ("", "Gelu", "swish9", "__import__('os').system('true')", "eval", 5, None, [])
    kinds = ("roberta", "gpt2", "", "BERT", None, 5, ["bert"])
    causal = {"architectures": ["BertLMHeadModel"]}
    return {
        ("config of huge sizes", CheckpointError, "(and must be|missing)"): _config(
            giant,
            {"hidden_size": HUGE},
            {"vocab_size": HUGE},
            {
                **giant,
                "vocab_size": HUGE,
                "max_position_embeddings": HUGE,
                "num_attention_heads": HUGE,
            },
            {**giant, "architectures": ["BertModel"]},
        ),
        ("config of huge sizes without weights", MissingFileError, "has no model.safetensors"): (
            {"config.json": to_json({**CONFIG, **change}), WEIGHTS: None}
            for change in (giant, {**giant, "architectures": ["BertModel"]})
        ),
        (
            "config with sizes out of range",
            CheckpointError,
            "must be at (least|most)|has 40",
        ): _config(*({name: value} for name in sizes for value in (0, -1, HUGE + 1, 10**400))),
        ("config with sizes that are no numbers", CheckpointError, "hidden_size"): _config(
            *({"hidden_size": value} for value in wrong)
        ),
        (
            "config with numbers that JSON doesn't know",
            DamagedFileError,
            "isn't a JSON number",
        ): _config(
            {"hidden_size": float("nan")},
            {"hidden_dropout_prob": float("-inf")},
            {"a_key_of_others": {"x": [float("inf")]}},
        ),
        (
            "config with an unknown activation",
            CheckpointError,
            "(unknown activation|hidden_act)",
        ): _config(*({"hidden_act": name} for name in activations)),
        (
            "config of another model type",
            CheckpointError,
            "(model_type|bertkit doesn.t have|which has no BertForPreTraining)",
        ): _config(*({"model_type": kind} for kind in kinds)),
        (
            "config that reads left to right",
            CheckpointError,
            r"reads left to right \(is_decoder\)",
        ): _config(
            {"is_decoder": True},
            {"is_decoder": True, "architectures": ["BertModel"]},
            {"is_decoder": True, "architectures": ["BertForMaskedLM"]},
        ),
        ("left-to-right model", None, ""): _config({**causal, "is_decoder": True}),
        ("left-to-right model whose config doesn't say so", CheckpointError, "is_decoder"): _config(
            *({**causal, "is_decoder": value} for value in (False, None, 1, "true", [True]))
        ),
        (
            "config that is defined by code of its own",
            CheckpointError,
            "code of its own .auto_map., which bertkit never runs",
        ): _config({"auto_map": {"AutoModel": "../evil.Evil"}, "trust_remote_code": True}),
        ("config that asks for remote code", None, ""): _config(
            {"trust_remote_code": True},
            {"custom_pipelines": {"x": {"impl": "evil.Evil"}}},
            {"_name_or_path": "/etc/passwd"},
        ),
    }


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


def _index() -> Defects:
    wrong: tuple[object, ...] = ([], 5, {}, {"weight_map": []}, {"weight_map": {"a": 5}})
    more: tuple[object, ...] = ({"weight_map": {"a": None}}, {"weight_map": {"a": ["x"]}}, None)
    names = list(tensors())
    changed = [{**true_places(), name: SHARDS[0]} for name in names[-3:]]
    changed += [{name: file for name, file in true_places().items() if name != names[0]}]
    changed += [{**true_places(), "bert.more": SHARDS[0]}, {**true_places(), "\x1b[2J": SHARDS[1]}]
    whole = weights_file()
    many = {f"t{number}": f"{number}.safetensors" for number in range(101)}
    return {
        ("weights in two files", None, ""): [_shards()],
        ("index without a map", DamagedFileError, "must have a weight_map from tensors to files"): (
            {**_shards(), INDEX: to_json(content)} for content in (*wrong, *more)
        ),
        ("index larger than any", DamagedFileError, "has more than 16,777,216 bytes"): (
            {**_shards(), INDEX: b"{}".ljust((16 << 20) + more)} for more in (1, 1 << 20)
        ),
        ("index and files disagree", DamagedFileError, "and its files disagree on where"): (
            _shards(places) for places in changed
        ),
        ("one tensor in two files", CheckpointError, "both hold"): (
            _shards(**{name: whole}) for name in SHARDS
        ),
        ("index of too many files", UnsafeFileError, "101 files; at most 20,000 in 100 may be"): [
            _shards(many)
        ],
        ("index names a missing file", MissingFileError, "doesn't exist"): (
            _shards({**true_places(), "bert.more": name})
            for name in ("c.safetensors", "a", "sub/c.safetensors", "a.safetensors/b", ".")
        ),
        ("index names a file of another kind", DamagedFileError, "isn't a whole safetensors"): (
            _shards({**true_places(), "bert.more": name})
            for name in ("config.json", "vocab.txt", INDEX)
        ),
    }


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


def _index_names() -> Defects:
    names = (
        "../outside/model.safetensors",
        "sub/../../outside/model.safetensors",
        "..",
        "/etc/passwd",
        "/dev/zero",
        "C:\\weights",
        "..\\weights",
        "a\0.safetensors",
        "a\n.safetensors",
        "",
        "x" * 256,
        "https://example.org/x",
    )
    return {
        (
            "index names a path outside",
            UnsafeFileError,
            "as one of its files; expected a name inside the folder",
        ): (_shards({**true_places(), "bert.more": name}) for name in names)
    }


def _linked_folders() -> Iterator[Case]:
    defect = "index names a file behind a linked folder"
    files = folder_with(_shards({**true_places(), "bert.more": "sub/model.safetensors"}))
    for number, target in enumerate(("{outside}", "/", "..", "/proc/self")):
        is_there = target == "{outside}"
        error = UnsafeFileError if is_there else MissingFileError
        match = "is a link that leads out" if is_there else "doesn't exist"
        yield Case(defect, number, files, error, match, {"sub": target})


def _vocabulary() -> Defects:
    def files(*vocabularies: tuple[str, ...] | bytes) -> Iterator[dict[str, bytes | None]]:
        for entries in vocabularies:
            text = entries if isinstance(entries, bytes) else vocabulary_file(entries)
            yield {"vocab.txt": text, "tokenizer.json": None}

    good = vocabulary_file()
    wide = "\U0001f600\n".encode()  # makes each character of the text take four bytes
    lines = b"".join(b"%075d\n" % number for number in range(400_000))
    return {
        ("vocabulary of two million entries", InputError, "entries; at most 1,000,000"): files(
            good + b"".join(b"x%d\n" % number for number in range(2_000_000)), b"\n" * 2_000_000
        ),
        ("vocabulary with entries of megabytes", InputError, "characters long; at most"): files(
            good + b"x" * (10 << 20), good + b"x" * 1001, good + b"\n".join([b"y" * (4 << 20)] * 7)
        ),
        ("vocabulary that is wide in memory", InputError, "lacks|characters long"): files(
            lines + wide, b"x" * (31 << 20) + wide
        ),
        ("vocabulary larger than any", DamagedFileError, "has more than 33,554,432 bytes"): files(
            good + b"x" * (32 << 20)
        ),
        ("vocabulary in another encoding", DamagedFileError, "vocab.txt isn't UTF-8"): files(
            *(good + more for more in (b"\xff\n", b"\xe9\n", b"\xed\xa0\x80\n", b"\xc0\xaf\n"))
        ),
        ("vocabulary with a byte order mark", None, ""): files(b"\xef\xbb\xbf" + good),
        ("vocabulary larger than the embedding", CheckpointError, "don't match"): files(
            (*VOCABULARY, "more"), (*VOCABULARY, *map(str, range(1000)))
        ),
        ("vocabulary smaller than the embedding", None, ""): files(VOCABULARY[:-1], VOCABULARY[:5]),
    }


def _tokenizer() -> Defects:
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
    return {
        ("tokenizer.json alone", None, ""): edited(lambda content: None),
        ("tokenizer of another algorithm", InputError, "tokenizer.json"): edited(
            setting("model", "type", value=5),
            setting("model", "max_input_chars_per_word", value=1 << 62),
            setting("model", "vocab", value={**vocabulary, "z": 1 << 62}),
            setting("model", "vocab", value=[["a", 0]]),
            *(setting(part, value=[]) for part in ("model", "normalizer", "pre_tokenizer")),
            *(setting("added_tokens", value=value) for value in ([5], "x", [{}], [None])),
        ),
        ("tokenizer larger than any", DamagedFileError, "has more than 33,554,432 bytes"): [
            {"tokenizer.json": b"{}".ljust((32 << 20) + 1)}
        ],
        ("tokenizer config with switches that aren't", InputError, "must be true or false"): (
            {"tokenizer_config.json": to_json({name: value})}
            for name in ("do_lower_case", "strip_accents", "tokenize_chinese_chars")
            for value in ("true", 1, [], {})
        ),
        ("tokenizer config that asks for remote code", None, ""): [
            {
                "tokenizer_config.json": to_json(
                    {"auto_map": {"AutoTokenizer": ["evil.Evil", None]}}
                )
            },
            {"tokenizer_config.json": to_json({"tokenizer_class": "evil.Evil", "x": "$(true)"})},
        ],
    }


def _links() -> Iterator[Case]:
    leads_out = "is a link that leads out of its folder"
    names = ("config.json", WEIGHTS, "vocab.txt", "tokenizer.json", "tokenizer_config.json")
    for number, name in enumerate(names):
        files, links = folder_with({name: None}), {name: f"{{outside}}/{name}"}
        yield Case(
            "file that is a link out of the folder",
            number,
            files,
            UnsafeFileError,
            leads_out,
            links,
        )
    files = folder_with({WEIGHTS: None})
    for number, target in enumerate(("/dev/zero", "/dev/null", "/proc/self/mem", "/dev/tty")):
        links = {WEIGHTS: target}
        yield Case(
            "weights that are a link to a device", number, files, UnsafeFileError, leads_out, links
        )
    circles = ({WEIGHTS: WEIGHTS}, {WEIGHTS: "x", "x": WEIGHTS}, {WEIGHTS: "missing"})
    for number, links in enumerate(circles):
        yield Case(
            "link in a circle or to nothing", number, files, MissingFileError, "exist", links
        )
    files = {**files, "sub/real.safetensors": weights_file()}
    yield Case("link inside the folder", 0, files, None, "", {WEIGHTS: "sub/real.safetensors"})


def _hub_cache() -> Iterator[Case]:
    """A snapshot in the Hub's cache is made of links to blobs beside it."""
    snapshot, blobs = "models--a--b/snapshots/0123", "models--a--b/blobs"
    files = {f"{blobs}/{name}": content for name, content in whole_files().items()}
    links = {f"{snapshot}/{name}": f"../../blobs/{name}" for name in whole_files()}
    yield Case("snapshot in the Hub's cache", 0, files, None, "", links, opened=snapshot)
    shared = {f"blobs/{name}": content for name, content in whole_files().items()}
    upper = {name: f"../../../blobs/{name.rpartition('/')[2]}" for name in links}
    yield Case("snapshot in the Hub's cache", 1, shared, None, "", upper, opened=snapshot)
    defect, match = "snapshot whose link leads elsewhere", "is a link that leads out of its folder"
    names = ("secret", "models--c--d/blobs/x", "models--a--b/refs/x", "models--a--b/snapshots/4/x")
    for number, name in enumerate(names):
        stolen = {**links, f"{snapshot}/{WEIGHTS}": f"../../../{name}"}
        more = {**files, name: weights_file()}
        yield Case(defect, number, more, UnsafeFileError, match, stolen, opened=snapshot)
    false = "snapshots/0123"  # not the cache's layout
    links = {f"{false}/{name}": f"../../blobs/{name}" for name in whole_files()}
    yield Case(defect, len(names), shared, UnsafeFileError, match, links, opened=false)


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
    match = "has no checkpoint yet"
    for number, files in enumerate(({"settings.json": b"{}"}, {"checkpoints/x": b""})):
        yield Case("run without checkpoint", number, files, MissingFileError, match)
    match = "doesn't end with its SHA-256"
    seals = (b"", b"{}", b"{" * 100_000, json.dumps({"format_version": 2, "files": {}}).encode())
    for number, text in enumerate(seals):
        files = folder_with({"manifest.json": text})
        yield Case("checkpoint whose manifest has no seal", number, files, DamagedFileError, match)
