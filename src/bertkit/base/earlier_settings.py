"""Settings in records of earlier versions, of runs and of models, under the names of this one."""

from collections.abc import Mapping
from typing import Any

RENAMED = {
    "start_from": "model",
    "from_revision": "revision",
    "eval_sequences": "eval_examples",
    "eval_pairs": "eval_examples",
    "words_column": "text_column",
    "tags_column": "label_column",
    "answers_column": "label_column",
    "max_source_length": "max_length",
    "max_target_length": "max_tokens",
}
# Settings that are gone: the values that are what is done now, or None if any value is.
GONE: dict[str, tuple[object, ...] | None] = {
    "deadline": None,
    "initializer_range": None,  # the model's config says it
    "lstm_hidden": None,
    "max_skipped_steps": None,
    "random_tokens": ("uniform",),
    "tag_column": (None,),  # of CoNLL, whose columns have numbers as names
    "token_column": (None,),
}
SIZES = {
    "size",
    "layers",
    "hidden_size",
    "heads",
    "feed_forward",
    "positions",
    "norm_first",
    "share_embeddings",
    "attention_dropout",
}


def update_settings(saved: Mapping[str, Any]) -> dict[str, Any]:
    """Return stored settings under the names of this version.

    A setting that is gone stays if it had a value that isn't done any more: then the run isn't
    resumed, and the model not loaded. So does a value that no version wrote. It is a ValueError if
    a long text was read in such a way.
    """
    settings = dict(saved)
    if "share_embeddings" in settings:  # of an encoder-decoder, whose config says the sizes
        settings = {name: value for name, value in settings.items() if name not in SIZES}
    if "start_from" in settings and "model" in settings:  # which was the size of a new one then
        settings["size"] = settings.pop("model")
    if "objective" in settings:  # of pre-training, whose models were all BERTs
        settings.setdefault("architecture", "bert")
    if (best_by := settings.pop("best_by", None)) is not None:
        metric = settings.get("metric", "auto")  # most tasks had no such setting
        settings["metric"] = "loss" if best_by == "loss" else metric
    if settings.pop("find_threshold", False):
        settings["threshold"] = "best"
    if (is_strict := settings.pop("strict", None)) is not None:
        settings["max_broken"] = 0.0 if is_strict else 1.0
    layers = settings.pop("feature_layers", "last")
    if settings.get("features") == "linear":
        settings["features"] = layers
    if settings.pop("keep_checkpoints", None) is False:
        settings["keep"] = None
    settings = {
        RENAMED.get(name, name): value
        for name, value in settings.items()
        if not _is_gone(name, value)
    }
    if "doc_stride" in settings:  # of a question's context; 128 was the default
        stride = settings.pop("doc_stride")
        settings |= {"long_texts": "windows", "stride": None if stride == 128 else stride}
    length, overlap = settings.get("max_length"), settings.get("context")
    if type(length) is int and type(overlap) is int and length > 2:  # beside [CLS] and [SEP]
        size = length - 2
        del settings["context"]
        stride = None if overlap == 32 else size - min(overlap, size // 2)  # 32 was the default
        settings |= {"long_texts": "windows", "stride": stride}
    if "too_long" in settings:
        too_long = settings.pop("too_long")
        settings["long_texts"] = "truncate" if too_long == "cut" else too_long
    is_bounded = settings.pop("max_windows", 32) != 32
    if (how := settings.get("long_texts")) == "head":
        settings |= {"long_texts": "truncate", "stride": None}
    elif how in ("tail", "head_tail") or (how == "windows" and is_bounded):
        cause = "max_windows is always 32" if how == "windows" else f"there is no long_texts {how}"
        raise ValueError(f"{cause} now; train it again with long_texts truncate or windows")
    return settings


def _is_gone(name: str, value: object) -> bool:
    """Whether a setting no longer exists, and a run with this value is what is done without it."""
    values = GONE.get(name, ())
    return values is None or value in values
