# Written by `make reference` from the settings that `takes` names.

from collections.abc import Mapping
from collections.abc import Sequence
from pathlib import Path
from typing import Literal
from typing import TypedDict

from bertkit.api.training import FinetuneArguments


class FillMaskKeywords(TypedDict, total=False):
    top_k: int  # 5
    targets: Sequence[str] | None  # None
    engine: Literal['auto', 'torch', 'openvino']  # 'auto'
    precision: Literal['auto', 'fp32', 'bf16', 'int8']  # 'auto'
    device: str  # 'auto'
    revision: str | None  # None
    encoding: str | None  # None
    delimiter: str | None  # None
    format: Literal['auto', 'text', 'json', 'jsonl', 'csv', 'tsv', 'parquet', 'xlsx']  # 'auto'
    text_column: str | None  # None

class NextSentenceKeywords(TypedDict, total=False):
    engine: Literal['auto', 'torch', 'openvino']  # 'auto'
    precision: Literal['auto', 'fp32', 'bf16', 'int8']  # 'auto'
    device: str  # 'auto'
    revision: str | None  # None

class ScoreKeywords(TypedDict, total=False):
    engine: Literal['auto', 'torch', 'openvino']  # 'auto'
    precision: Literal['auto', 'fp32', 'bf16', 'int8']  # 'auto'
    device: str  # 'auto'
    revision: str | None  # None
    encoding: str | None  # None
    delimiter: str | None  # None
    format: Literal['auto', 'text', 'json', 'jsonl', 'csv', 'tsv', 'parquet', 'xlsx']  # 'auto'
    text_column: str | None  # None

class ExportKeywords(TypedDict, total=False):
    precision: Literal['fp32', 'int8']  # 'fp32'
    encoder_only: bool  # False

class ReportKeywords(TypedDict, total=False):
    data: str | Path | None  # None
    text: Sequence[str]  # ()
    examples: int  # 6
    overwrite: bool  # False

class PrepareKeywords(TypedDict, total=False):
    language: str  # 'en'
    sentences: Literal['split', 'lines']  # 'split'
    held_out: float  # 0.02
    seed: int  # 0
    encoding: str | None  # None
    format: Literal['auto', 'text', 'jsonl', 'csv', 'tsv', 'parquet', 'mediawiki']  # 'auto'
    text_column: str  # 'text'
    max_broken: float  # 1.0
    run_on: str  # 'local'
    workers: int | None  # None
    threads: int | None  # None

class TrainTokenizerKeywords(TypedDict, total=False):
    encoding: str | None  # None
    format: Literal['auto', 'text', 'jsonl', 'csv', 'tsv', 'parquet', 'mediawiki']  # 'auto'
    text_column: str  # 'text'
    max_broken: float  # 1.0
    lowercase: bool  # True
    strip_accents: bool  # True
    split_cjk: bool  # True
    vocab_size: int  # 30522
    min_frequency: int  # 2
    alphabet_limit: int  # 1000

class FinetuneKeywords(FinetuneArguments, total=False):
    epochs: float | None  # None
    learning_rate: float  # 3e-05
    layer_decay: float  # 1.0
    freeze: str  # 'none'
    lora: int | None  # None
    dropout: float | None  # None
    classifier_dropout: float | None  # None
    features: Literal['last', 'last_four'] | None  # None
    patience: int | None  # None
    held_out: float  # 0.1
    split_seed: int | None  # None
    eval_every: int | None  # None
    overwrite: bool  # False
    encoding: str | None  # None
    delimiter: str | None  # None
    format: Literal['auto', 'text', 'json', 'jsonl', 'csv', 'tsv', 'parquet', 'xlsx', 'conll', 'squad']  # 'auto'
    header: bool  # True
    decimal: Literal['.', ',']  # '.'
    max_broken: float  # 0.01
    warmup: float  # 0.1
    schedule: Literal['linear', 'cosine', 'constant', 'inverse_sqrt']  # 'linear'
    weight_decay: float  # 0.01
    beta1: float  # 0.9
    beta2: float  # 0.999
    adam_epsilon: float  # 1e-06
    clip_norm: float  # 1.0
    seed: int  # 0
    checkpoint_every: int | None  # None
    keep: int | None  # None
    fsdp: bool  # False
    device: str  # 'auto'
    precision: Literal['auto', 'fp32', 'bf16']  # 'auto'
    batch_size: int  # 32
    accumulate: int  # 1
    seeds: int  # 1

class FinetuneClassifyKeywords(FinetuneKeywords, total=False):
    label_column: str | None  # None
    labels: str | None  # None
    multi_label: bool  # False
    label_separator: str  # ','
    class_weights: Literal['none', 'balanced']  # 'none'
    positive_label: str | None  # None
    few_shot: bool  # False
    threshold: float | Literal['best']  # 0.5
    max_length: int  # 128
    metric: Literal['auto', 'loss', 'accuracy', 'f1', 'macro_f1', 'matthews', 'micro_f1', 'subset_accuracy']  # 'auto'
    long_texts: Literal['truncate', 'windows']  # 'truncate'
    stride: int | None  # None
    text_column: str | None  # None
    pair_column: str | None  # None
    pairs: bool | None  # None
    pooling: Literal['cls', 'mean', 'max'] | None  # None

class RegressKeywords(FinetuneKeywords, total=False):
    label_column: str | None  # None
    max_length: int  # 128
    metric: Literal['auto', 'loss', 'accuracy', 'f1', 'macro_f1', 'matthews', 'micro_f1', 'subset_accuracy']  # 'auto'
    long_texts: Literal['truncate', 'windows']  # 'truncate'
    stride: int | None  # None
    text_column: str | None  # None
    pair_column: str | None  # None
    pairs: bool | None  # None
    pooling: Literal['cls', 'mean', 'max'] | None  # None

class TagKeywords(FinetuneKeywords, total=False):
    text_column: str | None  # None
    label_column: str | None  # None
    scheme: Literal['auto', 'entities', 'plain']  # 'auto'
    long_texts: Literal['truncate', 'windows']  # 'windows'
    stride: int | None  # None
    max_length: int  # 128
    metric: Literal['auto', 'loss', 'accuracy', 'f1', 'macro_f1', 'matthews', 'micro_f1', 'subset_accuracy']  # 'auto'

class AnswerKeywords(FinetuneKeywords, total=False):
    max_length: int  # 384
    long_texts: Literal['truncate', 'windows']  # 'windows'
    stride: int | None  # None
    max_question_length: int | None  # None
    max_answer_length: int  # 30
    n_best: int  # 20
    version: Literal['auto', '1.1', '2.0']  # 'auto'
    question_column: str | None  # None
    context_column: str | None  # None
    label_column: str | None  # None
    metric: Literal['auto', 'loss', 'accuracy', 'f1', 'macro_f1', 'matthews', 'micro_f1', 'subset_accuracy']  # 'auto'

class ChooseKeywords(FinetuneKeywords, total=False):
    context_column: str | None  # None
    question_column: str | None  # None
    choices_column: str | None  # None
    label_column: str | None  # None
    max_length: int  # 128
    metric: Literal['auto', 'loss', 'accuracy', 'f1', 'macro_f1', 'matthews', 'micro_f1', 'subset_accuracy']  # 'auto'

class FinetuneEmbedKeywords(FinetuneKeywords, total=False):
    max_length: int  # 256
    has_scores: bool | None  # None
    loss_temperature: float  # 0.05
    symmetric: bool  # False
    false_negative_margin: float | None  # None
    matryoshka: Sequence[int]  # ()
    teacher: str | None  # None
    num_layers: int | None  # None
    prompts: Mapping[str, str]  # PydanticUndefined
    metric: Literal['auto', 'loss', 'accuracy', 'f1', 'macro_f1', 'matthews', 'micro_f1', 'subset_accuracy']  # 'auto'
    text_column: str | None  # None
    pair_column: str | None  # None
    label_column: str | None  # None
    negative_column: str | None  # None
    negatives: Literal['file', 'mine'] | None  # None
    num_negatives: int | None  # None
    negative_margin: float  # 0.05
    negative_ranks: Sequence[int]  # (1, 100)

class FinetuneRerankKeywords(FinetuneKeywords, total=False):
    pooling: Literal['cls', 'mean', 'max'] | None  # None
    pairs: Literal[True]  # True
    max_length: int  # 256
    metric: Literal['auto', 'loss', 'accuracy', 'f1', 'macro_f1', 'matthews', 'micro_f1', 'subset_accuracy']  # 'auto'
    text_column: str | None  # None
    pair_column: str | None  # None
    label_column: str | None  # None
    negative_column: str | None  # None
    negatives: Literal['file', 'mine'] | None  # None
    num_negatives: int | None  # None
    negative_margin: float  # 0.05
    negative_ranks: Sequence[int]  # (1, 100)

class PretrainKeywords(TypedDict, total=False):
    size: str | None  # 'mini'
    architecture: Literal['bert', 'modernbert', 'roberta']  # 'bert'
    model: str | None  # None
    revision: str | None  # None
    recipe: Literal['modern', 'paper']  # 'modern'
    objective: Literal['bert', 'mlm', 'causal']  # by recipe
    initialization: Literal['neighbors', 'random']  # by recipe
    batch_size: int  # by size
    learning_rate: float  # by recipe
    optimizer: Literal['adamw', 'muon']  # by recipe
    muon_learning_rate: float  # 0.02
    long_length: int | None  # None
    long_share: float  # 0.1
    mask_rate: float  # by recipe
    dropout: float  # by recipe
    checkpoint_activations: bool  # False
    eval_examples: int  # 256
    steps: int | None  # None
    tokens: int | None  # None
    minutes: float | None  # None
    warmup: float  # 0.1
    schedule: Literal['linear', 'cosine', 'constant', 'inverse_sqrt']  # 'linear'
    weight_decay: float  # 0.01
    beta1: float  # 0.9
    beta2: float  # 0.999
    adam_epsilon: float  # 1e-06
    clip_norm: float  # 1.0
    seed: int  # 0
    eval_every: int | None  # None
    checkpoint_every: int | None  # None
    keep: int | None  # None
    fsdp: bool  # False
    device: str  # 'auto'
    precision: Literal['auto', 'fp32', 'bf16']  # 'auto'
    accumulate: int  # 1
    mask_token_share: float  # 0.8
    random_token_share: float  # 0.1
    whole_words: bool  # False
    max_length: int  # 128
    short_rate: float  # 0.1

class ClassifyKeywords(TypedDict, total=False):
    top_k: int | None  # None
    engine: Literal['auto', 'torch', 'openvino']  # 'auto'
    precision: Literal['auto', 'fp32', 'bf16', 'int8']  # 'auto'
    device: str  # 'auto'
    revision: str | None  # None
    encoding: str | None  # None
    delimiter: str | None  # None
    format: Literal['auto', 'text', 'json', 'jsonl', 'csv', 'tsv', 'parquet', 'xlsx']  # 'auto'
    text_column: str | None  # None

class EvaluateKeywords(TypedDict, total=False):
    text_column: str | None  # None
    pair_column: str | None  # None
    label_column: str | None  # None
    question_column: str | None  # None
    context_column: str | None  # None
    choices_column: str | None  # None
    split: Literal['train', 'dev', 'test']  # 'dev'
    overwrite: bool  # False
    encoding: str | None  # None
    delimiter: str | None  # None
    format: Literal['auto', 'text', 'json', 'jsonl', 'csv', 'tsv', 'parquet', 'xlsx', 'conll', 'squad']  # 'auto'
    header: bool  # True
    decimal: Literal['.', ',']  # '.'
    max_broken: float  # 0.01
    engine: Literal['auto', 'torch', 'openvino']  # 'auto'
    precision: Literal['auto', 'fp32', 'bf16', 'int8']  # 'auto'
    device: str  # 'auto'
    revision: str | None  # None

class PredictKeywords(TypedDict, total=False):
    text_column: str | None  # None
    pair_column: str | None  # None
    label_column: str | None  # None
    question_column: str | None  # None
    context_column: str | None  # None
    choices_column: str | None  # None
    split: Literal['train', 'dev', 'test']  # 'test'
    id_column: str | None  # None
    keep_columns: Sequence[str] | None  # None
    overwrite: bool  # False
    encoding: str | None  # None
    delimiter: str | None  # None
    format: Literal['auto', 'text', 'json', 'jsonl', 'csv', 'tsv', 'parquet', 'xlsx', 'conll', 'squad']  # 'auto'
    header: bool  # True
    decimal: Literal['.', ',']  # '.'
    top_k: int | None  # None
    explain: bool  # False
    engine: Literal['auto', 'torch', 'openvino']  # 'auto'
    precision: Literal['auto', 'fp32', 'bf16', 'int8']  # 'auto'
    device: str  # 'auto'
    revision: str | None  # None

class RerankKeywords(TypedDict, total=False):
    engine: Literal['auto', 'torch', 'openvino']  # 'auto'
    precision: Literal['auto', 'fp32', 'bf16', 'int8']  # 'auto'
    device: str  # 'auto'
    revision: str | None  # None
    encoding: str | None  # None
    delimiter: str | None  # None
    format: Literal['auto', 'text', 'json', 'jsonl', 'csv', 'tsv', 'parquet', 'xlsx']  # 'auto'
    text_column: str | None  # None

class ReviewKeywords(TypedDict, total=False):
    text_column: str | None  # None
    pair_column: str | None  # None
    label_column: str | None  # None
    question_column: str | None  # None
    context_column: str | None  # None
    choices_column: str | None  # None
    multi_label: bool  # False
    label_separator: str  # ','
    next: int | None  # None
    overwrite: bool  # False
    encoding: str | None  # None
    delimiter: str | None  # None
    format: Literal['auto', 'text', 'json', 'jsonl', 'csv', 'tsv', 'parquet', 'xlsx', 'conll', 'squad']  # 'auto'
    header: bool  # True
    decimal: Literal['.', ',']  # '.'
    max_broken: float  # 0.01

class EmbedKeywords(TypedDict, total=False):
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

class SearchKeywords(TypedDict, total=False):
    top_k: int  # 5
    by: Literal['words', 'vectors', 'both']  # 'both'
    where: str | dict[str, object] | None  # None
    rerank: str | None  # None
    candidates: int  # 50
    by_document: bool  # False
    passage_prompt: str | None  # None
    passage_tokens: int | None  # None
    passage_overlap: float  # 0.125
    device: str  # 'auto'
    revision: str | None  # None
    precision: Literal['auto', 'fp32', 'bf16', 'int8']  # 'auto'
    engine: Literal['auto', 'torch', 'openvino']  # 'auto'
    long_texts: Literal['truncate', 'windows']  # 'truncate'
    stride: int | None  # None
    pooling: Sequence[Literal['cls', 'mean', 'max', 'mean_sqrt_len_tokens', 'weightedmean', 'lasttoken', 'first_last_mean', 'last_four_concat', 'last_four_sum']] | None  # None
    normalize: bool | None  # None
    dimensions: int | None  # None
    prompt: str | None  # None
    prompt_name: str | None  # None
    max_length: int | None  # None
    deterministic: bool  # False
    similarity: Literal['cosine', 'dot', 'euclidean', 'manhattan'] | None  # None
    encoding: str | None  # None
    delimiter: str | None  # None
    format: Literal['auto', 'text', 'json', 'jsonl', 'csv', 'tsv', 'parquet', 'xlsx']  # 'auto'
    text_column: str | None  # None
    id_column: str | None  # None

class SimilarityKeywords(TypedDict, total=False):
    similarity: Literal['cosine', 'dot', 'euclidean', 'manhattan'] | None  # None
    device: str  # 'auto'
    revision: str | None  # None
    precision: Literal['auto', 'fp32', 'bf16', 'int8']  # 'auto'
    engine: Literal['auto', 'torch', 'openvino']  # 'auto'
    long_texts: Literal['truncate', 'windows']  # 'truncate'
    stride: int | None  # None
    pooling: Sequence[Literal['cls', 'mean', 'max', 'mean_sqrt_len_tokens', 'weightedmean', 'lasttoken', 'first_last_mean', 'last_four_concat', 'last_four_sum']] | None  # None
    normalize: bool | None  # None
    dimensions: int | None  # None
    prompt: str | None  # None
    prompt_name: str | None  # None
    max_length: int | None  # None
    deterministic: bool  # False
    encoding: str | None  # None
    delimiter: str | None  # None
    format: Literal['auto', 'text', 'json', 'jsonl', 'csv', 'tsv', 'parquet', 'xlsx']  # 'auto'
    text_column: str | None  # None
