"""Sentence-transformers folders that are broken or hostile, made of a whole one.

What is wrong in `modules.json` is told by every door; the rest by `OpenModel.sentences`, since an
encoder that is loaded by itself has no use for it.
"""

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from tests.hostile.case import Case, Defects, make_cases
from tests.hostile.whole import CONFIG, folder_with, to_json, weights_file

from bertkit.base.errors import CheckpointError, DamagedFileError, MissingFileError, UnsafeFileError

OLD = "sentence_transformers.models"
TYPES = [f"{OLD}.{kind}" for kind in ("Transformer", "Pooling", "Dense", "Normalize")]
MODULES = [
    {"idx": 0, "name": "0", "path": "", "type": TYPES[0]},
    {"idx": 1, "name": "1", "path": "1_Pooling", "type": TYPES[1]},
    {"idx": 2, "name": "2", "path": "2_Dense", "type": TYPES[2]},
    {"idx": 3, "name": "3", "path": "3_Normalize", "type": TYPES[3]},
]
POOLING = {
    "word_embedding_dimension": 8,
    "pooling_mode_cls_token": False,
    "pooling_mode_mean_tokens": True,
    "pooling_mode_max_tokens": False,
    "pooling_mode_mean_sqrt_len_tokens": False,
}
TANH = "torch.nn.modules.activation.Tanh"
DENSE = {"in_features": 8, "out_features": 4, "bias": True, "activation_function": TANH}
ENCODER = {"max_seq_length": 12, "do_lower_case": False}
SETTINGS = {"__version__": {"sentence_transformers": "2.2.2"}, "prompts": {"query": "query: "}}
LINEAR = {
    "linear.weight": torch.arange(32.0).reshape(4, 8) / 32,
    "linear.bias": torch.arange(4.0) / 4,
}

MODULES_FILE = "modules.json"
POOLING_FILE = "1_Pooling/config.json"
DENSE_FILE = "2_Dense/config.json"
DENSE_WEIGHTS = "2_Dense/model.safetensors"
ENCODER_FILE = "sentence_bert_config.json"
SETTINGS_FILE = "config_sentence_transformers.json"

Changes = Mapping[str, bytes | None]


def sentence_folder(changes: Changes | None = None) -> dict[str, bytes]:
    """The files of a whole folder, with some replaced or added, and those of None left out."""
    files: dict[str, bytes | None] = {
        MODULES_FILE: to_json(MODULES),
        POOLING_FILE: to_json(POOLING),
        DENSE_FILE: to_json(DENSE),
        DENSE_WEIGHTS: weights_file(LINEAR),
        ENCODER_FILE: to_json(ENCODER),
        SETTINGS_FILE: to_json(SETTINGS),
    }
    return folder_with({**files, **(changes or {})})


def change_module(index: int, **values: Any) -> dict[str, bytes]:
    """`modules.json` with other values in one of its entries."""
    entries = [dict(entry) for entry in MODULES]
    entries[index].update(values)
    return {MODULES_FILE: to_json(entries)}


def cases() -> Iterator[Case]:
    """All of them."""
    for part in PARTS:
        for case in make_cases(part(), sentence_folder):
            yield replace(case, defect=f"sentences: {case.defect}")
    for number, name in enumerate((POOLING_FILE, DENSE_WEIGHTS, SETTINGS_FILE, MODULES_FILE)):
        files, target = sentence_folder({name: None}), {name: "{outside}/config.json"}
        defect = "sentences: a link that leads out"
        yield Case(defect, number, files, UnsafeFileError, "leads out of its folder", links=target)


def _texts() -> Defects:
    names = (MODULES_FILE, POOLING_FILE, DENSE_FILE, ENCODER_FILE, SETTINGS_FILE)
    damaged: Defects = {
        (f"a description {damage}", DamagedFileError, match): [{name: text} for name in names]
        for damage, text, match in (
            ("isn't JSON", b"{", "isn't JSON"),
            ("has a key twice", b'[{"x": 1, "x": 2}]', "the key 'x' appears twice"),
            ("is oversized", b'{"x": "' + b" " * (2 << 20) + b'"}', "more than 1,048,576 bytes"),
        )
    }
    values = [{}, None, "x", 7, {"0": MODULES[0]}]
    return damaged | {
        ("modules.json isn't a list", DamagedFileError, "must be a list of modules"): (
            {MODULES_FILE: to_json(value)} for value in values
        )
    }


def _module_types() -> Defects:
    foreign = ["modeling.Custom", "os.system", "builtins.eval", "torch.hub.load", "Pooling", ""]
    foreign += ["transformers_modules.a.b.C", "sentence_transformersx.models.Pooling", "\x1b[2J"]
    others = ("LSTM", "CNN", "BoW", "WordEmbeddings", "CLIPModel", "Asym", "LayerNorm", "Dropout")
    return {
        (
            "a module of the model's own code",
            UnsafeFileError,
            "code of the model's own, which bertkit never runs",
        ): (change_module(index, type=name) for index in (0, 2) for name in foreign),
        (
            "a module that isn't done",
            CheckpointError,
            r"names the module 'sentence_transformers.models.\w+'; bertkit does",
        ): (change_module(2, type=f"{OLD}.{name}") for name in others),
    }


def _module_entries() -> Defects:
    wrong: list[object] = ["x", 7, None, {}, {"idx": "0"}, [MODULES[0]]]
    lists = [[], *([entry] for entry in wrong), [MODULES[0]] * 17, [MODULES[0]] * 10_000]
    lists += [[{**MODULES[0], "trust_remote_code": True}], [{**MODULES[0], "\x1b[2J": 1}]]
    orders = [(1, 0, 2), (0, 0, 1), (0, 2, 1), (0, 3, 1), (0,), (0, 1, 1), (0, 2), (1,)]
    return {
        (
            "entries of modules.json of a wrong form",
            CheckpointError,
            "isn't a file that bertkit reads: '?modules",
        ): ({MODULES_FILE: to_json(entries)} for entries in lists),
        (
            "modules that take arguments",
            CheckpointError,
            "takes '(task|trust_remote_code)' of each call",
        ): [change_module(0, kwargs=["task"]), change_module(1, kwargs=["trust_remote_code"])],
        ("modules that contradict their places", DamagedFileError, "in place|one name"): [
            change_module(1, idx=2),
            change_module(0, idx=-1),
            change_module(3, name="0"),
        ],
        (
            "modules in an order without sense",
            CheckpointError,
            "the Transformer comes first|expected Transformer, Pooling",
        ): ({MODULES_FILE: to_json(_order(order))} for order in orders),
    }


def _order(indices: Iterable[int]) -> list[dict[str, object]]:
    return [{**MODULES[i], "idx": at, "name": str(at)} for at, i in enumerate(indices)]


def _paths() -> Defects:
    names = ["../outside", "/etc", "a/../../outside", "C:\\x", "a\\b", "a\0b", "x" * 300, "\x1b[2J"]
    return {
        (
            "a module's folder that leads out",
            UnsafeFileError,
            "expected a name inside the folder",
        ): (change_module(index, path=name) for index in (0, 1) for name in names),
        ("a module without a folder", CheckpointError, "must have a folder of its own"): [
            change_module(1, path=""),
            change_module(2, path="."),
            change_module(3, path=""),
        ],
        ("a module that isn't there", MissingFileError, "doesn't exist|has no model.safetensors"): [
            change_module(0, path="0_Transformer"),
            change_module(1, path="1_Polling"),
            {POOLING_FILE: None},
            {DENSE_FILE: None},
            {DENSE_WEIGHTS: None},
        ],
    }


def _pooling() -> Defects:
    without = {key: value for key, value in POOLING.items() if "mean_tokens" not in key}
    contents = [
        {**POOLING, "pooling_mode_mean_tokens": False},
        {"embedding_dimension": 8, "pooling_mode": ["mean", "mean"]},
        without,
        {"pooling_mode": "mean"},
        {**POOLING, "embedding_dimension": 16},
    ]
    values: list[dict[str, object]] = [
        {"pooling_mode": "os.system"},
        {"pooling_mode_mean_tokens": "true"},
        {"include_prompt": None},
        {"word_embedding_dimension": 8.0},
        {"word_embedding_dimension": -8},
        {"pooling_mode_new_tokens": True},
        {"\x1b[2J": 1},
    ]
    return {
        (
            "pooling that contradicts itself",
            CheckpointError,
            "must name|must say|disagree|must have one size",
        ): ({POOLING_FILE: to_json(content)} for content in contents),
        ("pooling of wrong values", CheckpointError, "isn't a file that bertkit reads"): (
            {POOLING_FILE: to_json({**POOLING, **value})} for value in values
        ),
    }


def _sizes() -> Defects:
    wide = {**LINEAR, "linear.weight": torch.zeros(4, 16)}
    sizes: list[object] = [0, -8, "8", 8.0, True, None, [8], {"x": 1}]
    return {
        (
            "modules that don't fit each other",
            CheckpointError,
            r"(Pooling|Dense) takes \d+ features, and what is before it gives \d+",
        ): [
            {POOLING_FILE: to_json({**POOLING, "word_embedding_dimension": 16})},
            {POOLING_FILE: to_json({**POOLING, "pooling_mode_cls_token": True})},
            {DENSE_FILE: to_json({**DENSE, "in_features": 16}), DENSE_WEIGHTS: weights_file(wide)},
        ],
        ("sizes of the encoder that are none", CheckpointError, "hidden_size"): (
            {"config.json": to_json({**CONFIG, "hidden_size": size})} for size in sizes
        ),
    }


def _dense() -> Defects:
    values: list[dict[str, object]] = [
        {"use_residual": True},
        {"module_input_name": "token_embeddings"},
        {"in_features": "8"},
        {"out_features": 0},
        {"activation_function": None},
    ]
    names = ["os.system", "builtins.eval", "torch.hub.load", "torch.load", "modeling.Swish", ""]
    unknown = ["torch.nn.modules.activation.MultiheadAttention", "torch.nn.functional.tanh"]
    return {
        ("a Dense module of wrong values", CheckpointError, "isn't a file that bertkit reads"): (
            {DENSE_FILE: to_json({**DENSE, **value})} for value in values
        ),
        ("an activation that is code", UnsafeFileError, "code that bertkit doesn't run"): (
            {DENSE_FILE: to_json({**DENSE, "activation_function": name})} for name in names
        ),
        (
            "an activation that isn't known",
            CheckpointError,
            "activation_function is .*; known are",
        ): ({DENSE_FILE: to_json({**DENSE, "activation_function": name})} for name in unknown),
    }


class _Call:
    """What a pickle calls when it is loaded by pickle."""

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[str]]:
        import os

        return os.system, ("touch canary",)


def _dense_weights() -> Defects:
    whole = weights_file(LINEAR)
    wrong = [
        {"linear.weight": LINEAR["linear.weight"]},
        {**LINEAR, "linear.scale": torch.zeros(1)},
        {**LINEAR, "linear.weight": torch.zeros(8, 4)},
        {},
    ]
    bad = [torch.full((4,), value) for value in (torch.nan, torch.inf, -torch.inf)]
    return {
        (
            "weights of a Dense module that are cut",
            DamagedFileError,
            "is empty|isn't a whole safetensors file",
        ): ({DENSE_WEIGHTS: whole[:size]} for size in (0, 7, 8, 60, len(whole) - 1)),
        ("weights of a Dense module of other shapes", CheckpointError, "has the tensors"): (
            {DENSE_WEIGHTS: weights_file(tensors)} for tensors in wrong
        ),
        (
            "weights of a Dense module that are no numbers",
            CheckpointError,
            "must hold finite floating-point numbers",
        ): (
            {DENSE_WEIGHTS: weights_file({**LINEAR, "linear.bias": bias})}
            for bias in (*bad, torch.zeros(4, dtype=torch.int64))
        ),
        ("weights of a Dense module that call", UnsafeFileError, "system"): [
            {DENSE_WEIGHTS: None, "2_Dense/pytorch_model.bin": pickle.dumps(_Call(), protocol=2)}
        ],
    }


def _settings() -> Defects:
    values: list[dict[str, object]] = [
        {"model_args": {"trust_remote_code": True}},
        {"tokenizer_args": {"trust_remote_code": True}},
        {"processing_kwargs": {"text": {"padding": "longest"}}},
        {"module_output_name": "all_layer_embeddings"},
        {"tokenizer_name_or_path": "../outside"},
        {"max_seq_length": 0},
        {"max_seq_length": "12"},
        {"max_seq_length": 1 << 40},
        {"do_lower_case": "no"},
        {"\x1b[2J": 1},
    ]
    lengths: list[object] = ["16", 0, -1, True, None, [16]]
    text = {"image": {"method": "get_image_features", "method_output_name": "pooler_output"}}
    return {
        ("encoder settings that aren't done", CheckpointError, "isn't a file that bertkit reads"): (
            {ENCODER_FILE: to_json({**ENCODER, **value})} for value in values
        ),
        (
            "a length over the positions",
            CheckpointError,
            r"max_seq_length \(17\) is over the max_position_embeddings \(16\)",
        ): [{ENCODER_FILE: to_json({"max_seq_length": 17})}],
        ("a tokenizer's length that is none", CheckpointError, "model_max_length must be a"): (
            {ENCODER_FILE: None, "tokenizer_config.json": to_json({"model_max_length": length})}
            for length in lengths
        ),
        ("an encoder of something else than text", CheckpointError, "modality_config must be"): [
            {ENCODER_FILE: to_json({"modality_config": value})} for value in ({}, text)
        ],
    }


def _whole_settings() -> Defects:
    values: list[dict[str, object]] = [
        {"prompts": {"query": "x" * 100_001}},
        {"prompts": ["x"]},
        {"similarity_fn_name": "os.system"},
        {"truncate_dim": 0},
        {"default_prompt_name": 7},
    ]
    prompts = [{}, {"query": None}]
    kinds: list[object] = ["CrossEncoder", "SparseEncoder", "MultiVectorEncoder", None, 7, ["x"]]
    return {
        (
            "settings of the whole of wrong values",
            CheckpointError,
            "isn't a file that bertkit reads",
        ): ({SETTINGS_FILE: to_json(value)} for value in values),
        ("a default prompt that isn't there", CheckpointError, "isn't one of prompts"): (
            {SETTINGS_FILE: to_json({"prompts": value, "default_prompt_name": "query"})}
            for value in prompts
        ),
        ("a model of another kind", CheckpointError, "and bertkit reads SentenceTransformer"): (
            {SETTINGS_FILE: to_json({"model_type": kind})} for kind in kinds
        ),
        ("kept values that are nested deep", UnsafeFileError, "nested over 16 deep"): (
            {SETTINGS_FILE: b'{"x": ' + b"[" * n + b"]" * n + b"}"} for n in (17, 100, 400)
        ),
        ("kept values that JSON doesn't know", DamagedFileError, "isn't a JSON number"): (
            {SETTINGS_FILE: b'{"x": [%s]}' % text} for text in (b"NaN", b"Infinity", b"1e999")
        ),
    }


def _accepted() -> Defects:
    changes: list[Changes] = [
        {},
        {SETTINGS_FILE: None, ENCODER_FILE: None},
        {SETTINGS_FILE: to_json({"new": {"key": [1, None]}, "prompts": {"query": None}})},
        {DENSE_WEIGHTS: weights_file({n: t.bfloat16() for n, t in LINEAR.items()})},
        {"3_Normalize/config.json": b"{}", "auto_map.py": b"raise SystemExit"},
    ]
    return {("nothing wrong", None, ""): changes}


PARTS = (
    *(_texts, _module_types, _module_entries, _paths, _pooling, _sizes, _dense),
    *(_dense_weights, _settings, _whole_settings, _accepted),
)
