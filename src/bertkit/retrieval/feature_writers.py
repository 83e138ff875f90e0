"""The formats of features: JSON lines, those of google-research/bert, and Parquet."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from pydantic import JsonValue

from bertkit.base.files import DurableFile
from bertkit.data.writers import build_schema, write_lines, write_tables
from bertkit.inference.embeddings.features import Array, FeaturePlan, TextFeatures

if TYPE_CHECKING:
    import pyarrow as pa


DECIMALS = 6  # as in google-research/bert's script
GROUP_BYTES = 64 << 20  # of features, in one row group of Parquet
FeatureRow = tuple[str | None, TextFeatures]  # with the id of its text, if it has one


@dataclass(frozen=True)
class OutputLayout:
    """The layout of the output."""

    plan: FeaturePlan
    identity: dict[str, JsonValue]  # everything that the features depend on
    has_ids: bool = False
    is_google: bool = False  # whether the keys are those of google-research/bert

    @property
    def column_names(self) -> tuple[str, ...]:
        """`features`; or one column per layer, such as `layer_12`, if layers aren't combined."""
        if self.plan.combine != "none":
            return ("features",)
        return tuple(f"layer_{layer}" for layer in self.plan.layers)

    def cut_columns(self, features: Array) -> dict[str, Array]:
        """Split features into columns by name, each `[tokens, width]`."""
        if self.plan.combine != "none":
            return {"features": features}
        return {name: features[:, number] for number, name in enumerate(self.column_names)}


def format_line(row: int, features_of: FeatureRow, form: OutputLayout) -> str:
    """Format a row as JSON, without the newline; row 0 is the first."""
    name, text = features_of
    if form.is_google:  # an index is the layer number as requested
        values = np.round(text.features.astype(np.float64), DECIMALS).tolist()
        features = [
            {
                "token": token,
                "layers": [
                    {"index": index, "values": layer}
                    for index, layer in zip(form.plan.requested, layers, strict=True)
                ],
            }
            for token, layers in zip(text.encoding.tokens, values, strict=True)
        ]
        return json.dumps({"linex_index": row, "features": features}, ensure_ascii=False)
    encoding = text.encoding
    fields = {
        "row": str(row),
        **({"id": json.dumps(name, ensure_ascii=False)} if form.has_ids else {}),
        "tokens": json.dumps(encoding.tokens, ensure_ascii=False),
        "token_type_ids": json.dumps(encoding.token_type_ids),
        "offsets": json.dumps(encoding.offsets),
        "truncated": json.dumps(text.is_truncated),
    }
    for column, matrix in form.cut_columns(text.features).items():
        fields[column] = _format_matrix(matrix)
    fields["c"] = _format_matrix(text.sequence[None])[1:-1]
    fields["c_from"] = json.dumps(form.identity["sequence_from"])
    return "{" + ", ".join(f'"{name}": {value}' for name, value in fields.items()) + "}"


def _format_matrix(matrix: Array) -> str:
    """Format a matrix as nested lists; numbers in their shortest float32 round-trip form."""
    rows = (f"[{', '.join(row)}]" for row in matrix.astype(str).tolist())
    return f"[{', '.join(rows)}]"


def write_jsonl(file: DurableFile, texts: Iterable[FeatureRow], form: OutputLayout) -> None:
    """Write one JSON line per text."""
    write_lines(file, (format_line(row, text, form) for row, text in enumerate(texts)))


def write_parquet(file: DurableFile, texts: Iterable[FeatureRow], form: OutputLayout) -> None:
    """Write one row per text with lists of token features; the identity is in the metadata.

    | column | type |
    | --- | --- |
    | `row` | int64 |
    | `id`, if texts have ids | string |
    | `tokens` | list<string> |
    | `token_type_ids`, `starts`, `ends` | list<int32> |
    | `truncated` | bool |
    | `features`, or `layer_12` … | list<fixed_size_list<float>> |
    | `c` | fixed_size_list<float> |
    """
    import pyarrow as pa

    def build_tables() -> "Iterator[pa.Table]":
        group: list[FeatureRow] = []
        row = num_bytes = 0
        for text in texts:
            group.append(text)
            num_bytes += text[1].features.nbytes
            if num_bytes >= GROUP_BYTES:
                yield build_table(group, row, form, schema)
                row, group, num_bytes = row + len(group), [], 0
        if group:
            yield build_table(group, row, form, schema)

    integers, width = pa.list_(pa.int32()), form.plan.shape[-1]
    schema = build_schema(
        [
            ("row", pa.int64()),
            *([("id", pa.string())] if form.has_ids else []),
            ("tokens", pa.list_(pa.string())),
            *((name, integers) for name in ("token_type_ids", "starts", "ends")),
            ("truncated", pa.bool_()),
            *((name, pa.list_(pa.list_(pa.float32(), width))) for name in form.column_names),
            ("c", pa.list_(pa.float32(), form.plan.hidden_size)),
        ],
        form.identity,
    )
    vectors = [f"{name}.list.element.list.element" for name in form.column_names]
    write_tables(
        file,
        schema,
        build_tables(),
        compression="zstd",
        use_dictionary=False,
        use_byte_stream_split=[*vectors, "c.list.element"],  # a seventh smaller, not slower
    )


def build_table(
    rows: Sequence[FeatureRow], first_row: int, form: OutputLayout, schema: "pa.Schema"
) -> "pa.Table":
    """Build a table from texts."""
    import pyarrow as pa

    ids, texts = zip(*rows, strict=True)
    encodings = [text.encoding for text in texts]
    starts = pa.array(np.cumsum([0, *map(len, encodings)]), pa.int32())
    columns = {
        "row": range(first_row, first_row + len(texts)),
        **({"id": ids} if form.has_ids else {}),
        "tokens": [encoding.tokens for encoding in encodings],
        "token_type_ids": [encoding.token_type_ids for encoding in encodings],
        "starts": [[start for start, _ in encoding.offsets] for encoding in encodings],
        "ends": [[end for _, end in encoding.offsets] for encoding in encodings],
        "truncated": [text.is_truncated for text in texts],
    }
    arrays = {name: pa.array(values, schema.field(name).type) for name, values in columns.items()}
    named = form.cut_columns(np.concatenate([text.features for text in texts]))
    for name, features in named.items():
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(features.ravel()), features.shape[1])
        arrays[name] = pa.ListArray.from_arrays(starts, vectors)
    sequences = np.stack([text.sequence for text in texts])
    arrays["c"] = pa.FixedSizeListArray.from_arrays(pa.array(sequences.ravel()), sequences.shape[1])
    return pa.table(arrays, schema=schema)


FEATURE_WRITERS: dict[str, Callable[[DurableFile, Iterable[FeatureRow], OutputLayout], None]] = {
    ".jsonl": write_jsonl,
    ".parquet": write_parquet,
}
