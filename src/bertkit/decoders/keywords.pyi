# Written by `make reference` from the settings that `takes` names.

from collections.abc import Sequence
from typing import Literal
from typing import TypedDict


class GenerateKeywords(TypedDict, total=False):
    max_tokens: int | None  # 64
    beams: int  # 1
    length_penalty: float  # 1.0
    no_repeat_ngram: int  # 0
    min_tokens: int  # 0
    temperature: float | None  # None
    top_k: int | None  # None
    top_p: float | None  # None
    num_answers: int  # 1
    seed: int  # 0
    device: str  # 'auto'
    revision: str | None  # None
    precision: Literal['auto', 'fp32', 'bf16', 'int8']  # 'auto'
    encoding: str | None  # None
    delimiter: str | None  # None
    format: Literal['auto', 'text', 'json', 'jsonl', 'csv', 'tsv', 'parquet', 'xlsx']  # 'auto'
    text_column: str | None  # None

class TranslateKeywords(TypedDict, total=False):
    beams: int | None  # None
    length_penalty: float | None  # None
    no_repeat_ngram: int | None  # None
    min_tokens: int | None  # None
    max_tokens: int | None  # None
    temperature: float | None  # None
    top_k: int | None  # None
    top_p: float | None  # None
    num_answers: int | None  # None
    seed: int | None  # None
    device: str  # 'auto'
    revision: str | None  # None
    precision: Literal['auto', 'fp32', 'bf16', 'int8']  # 'auto'
    encoding: str | None  # None
    delimiter: str | None  # None
    format: Literal['auto', 'text', 'json', 'jsonl', 'csv', 'tsv', 'parquet', 'xlsx']  # 'auto'
    text_column: str | None  # None

class SummarizeKeywords(TypedDict, total=False):
    length: str | int  # '3'
    diversity: float  # 0.3
    language: str  # 'en'
    beams: int | None  # None
    length_penalty: float | None  # None
    no_repeat_ngram: int | None  # None
    min_tokens: int | None  # None
    max_tokens: int | None  # None
    temperature: float | None  # None
    top_k: int | None  # None
    top_p: float | None  # None
    num_answers: int | None  # None
    seed: int | None  # None
    pooling: Sequence[Literal['cls', 'mean', 'max', 'mean_sqrt_len_tokens', 'weightedmean', 'lasttoken', 'first_last_mean', 'last_four_concat', 'last_four_sum']] | None  # None
    normalize: bool | None  # None
    dimensions: int | None  # None
    prompt: str | None  # None
    prompt_name: str | None  # None
    max_length: int | None  # None
    deterministic: bool  # False
    device: str  # 'auto'
    revision: str | None  # None
    precision: Literal['auto', 'fp32', 'bf16', 'int8']  # 'auto'
    engine: Literal['auto', 'torch', 'openvino']  # 'auto'
    long_texts: Literal['truncate', 'windows']  # 'truncate'
    stride: int | None  # None
    encoding: str | None  # None
    delimiter: str | None  # None
    format: Literal['auto', 'text', 'json', 'jsonl', 'csv', 'tsv', 'parquet', 'xlsx']  # 'auto'
    text_column: str | None  # None
