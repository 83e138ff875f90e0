"""A classifier's labels: the three keys of `config.json` that say their number and names."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from bertkit.base.errors import InputError
from bertkit.checkpoints.file_names import CONFIG_LIMIT_BYTES

MAX_LABELS = 100_000  # a classifier on BERT-Base then has 77 million weights
LABEL_KEYS = ("id2label", "label2id", "num_labels")
ConfigValues: TypeAlias = Mapping[str, Any]  # the content of a `config.json`
BYTES_BESIDE = 20  # per label in `config.json`: its id, quotes, spaces and line break


def check_names(labels: Sequence[str]) -> None:
    """Check that a model's labels, in number and total length, fit into its `config.json`."""
    if len(labels) > MAX_LABELS:
        raise InputError(
            f"there are {len(labels):,} labels, and a model supports at most {MAX_LABELS:,}; check"
            " the label column, or merge rare labels"
        )
    num_bytes = 2 * sum(len(json.dumps(label)) + BYTES_BESIDE for label in labels)
    if num_bytes > 0.9 * CONFIG_LIMIT_BYTES:
        raise InputError(
            f"the names of {len(labels):,} labels take {num_bytes / (1 << 20):,.0f} MiB of"
            f" config.json, which has at most {CONFIG_LIMIT_BYTES >> 20} MiB; check the"
            " label column, or use shorter names"
        )


def read_labels(values: ConfigValues) -> dict[str, Any]:
    """Check the three keys and combine them to `id2label` and `label2id`, or to nothing.

    Source: transformers, which names labels LABEL_0, LABEL_1 … by default.
    """
    names, ids, number = map(values.get, LABEL_KEYS)
    if names is None and ids is not None:
        raise ValueError("label2id requires id2label, its inverse")
    if number is not None and not (type(number) is int and 1 <= number <= MAX_LABELS):
        raise ValueError(f"num_labels must be from 1 to {MAX_LABELS:,}, got {number!r:.40}")
    if names is None:
        if number is None:
            return {}
        names = {str(id_): f"LABEL_{id_}" for id_ in range(number)}
    labels = _list_labels(names)
    if number not in (None, len(labels)):
        raise ValueError(f"num_labels is {number}, and id2label has {len(labels)} labels")
    by_label = {label: str(id_) for id_, label in enumerate(labels)}
    if ids is not None and (
        not isinstance(ids, dict) or {key: str(id_) for key, id_ in ids.items()} != by_label
    ):
        raise ValueError("label2id contradicts id2label; it must be its inverse")
    label2id = {label: id_ for id_, label in enumerate(labels)}
    return {"id2label": dict(enumerate(labels)), "label2id": label2id}


def _list_labels(names: object) -> list[str]:
    """Return the labels in the order of their ids, which are strings if read from a file."""
    if not isinstance(names, dict) or not 1 <= len(names) <= MAX_LABELS:
        raise ValueError(f"id2label must map 1 to {MAX_LABELS:,} ids to labels")
    by_id = {str(id_): label for id_, label in names.items()}
    wanted = [str(id_) for id_ in range(len(names))]
    if gaps := [id_ for id_ in wanted if id_ not in by_id]:
        raise ValueError(
            f"id2label has {len(names)} ids, and {gaps[0]} is missing; they must be 0, 1, 2 …"
        )
    labels = [label for id_ in wanted if isinstance(label := by_id[id_], str) and label]
    if len(labels) < len(wanted):
        raise ValueError("labels in id2label must be non-empty strings")
    if len(set(labels)) < len(labels):
        raise ValueError("labels in id2label must be unique")
    return labels
