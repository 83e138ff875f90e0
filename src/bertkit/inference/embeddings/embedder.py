"""Vectors of texts and of their tokens, in Python, in pipelines of scikit-learn and on the server.

A long text is divided into parts, whose vectors are averaged.
"""

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from functools import cached_property
from pathlib import Path
from typing import Any, Self, cast

import numpy as np

from bertkit.base.errors import SettingsError
from bertkit.base.progress import show_progress
from bertkit.base.settings import Settings
from bertkit.checkpoints.run_folder import read_metrics
from bertkit.checkpoints.sentence_transformers import SentenceModel
from bertkit.inference.embeddings.pooling import SentenceHead, Span
from bertkit.inference.embeddings.settings import EmbedderSettings, EmbedOptions, Similarity
from bertkit.inference.embeddings.transformer import TextTransformer, Vectors
from bertkit.inference.engines.choice import open_engine
from bertkit.inference.engines.engine import Engine, check_finite
from bertkit.inference.loading import LoadedModel
from bertkit.inference.pipeline import NamedInput, compute_in_batches, is_several
from bertkit.inference.stream import EncodedTexts, TextCounts, TextEncoder
from bertkit.models.bert.config import ENCODER
from bertkit.models.open_model import OpenModel
from bertkit.nn.packed_ids import PackedIds, reduce_sequences

# Names of prompts, in the order of sentence-transformers.
QUERY_PROMPTS = ("query",)
PASSAGE_PROMPTS = ("document", "passage", "corpus")


@dataclasses.dataclass(eq=False)  # not frozen: scikit-learn sets attributes of its own
class Embedder(TextTransformer):
    """Computes one vector for each text; a step of scikit-learn's pipelines, too.

    A call with a text returns its vector, `[dimension]`; a call with a list, `[texts, dimension]`.

    Examples:
        >>> embed = Embedder.load("all-MiniLM-L6-v2/")  # doctest: +SKIP
        >>> embed(["A cat sat.", "It sat."]).shape  # doctest: +SKIP
        (2, 384)

    Attributes:
        opened: where the model came from.
        engine: computes hidden states.
        text_encoder: encodes texts as token ids.
        head: pools hidden states to one vector.
        settings: the embedder's settings.
        similarity: similarity function stated in the model's folder: cosine, dot, euclidean or
            manhattan; cosine if not stated.
        prompts: the model's prompts, by name.
        params: what it was loaded with, for `get_params`.
    """

    opened: OpenModel
    engine: Engine
    text_encoder: TextEncoder
    head: SentenceHead
    settings: EmbedderSettings
    similarity: Similarity = "cosine"
    prompts: dict[str, str] = dataclasses.field(default_factory=dict)
    options: EmbedOptions = dataclasses.field(default_factory=EmbedOptions)
    params: Mapping[str, Any] = dataclasses.field(default_factory=dict, repr=False)

    bundled = "vectors"
    loading_kind = EmbedderSettings

    @classmethod
    def load(
        cls,
        model: str | Path | OpenModel | None = None,
        settings: Settings | None = None,
        **loading: Any,
    ) -> Self:
        """Load any BERT; arguments are those of `Loadable.load`, and fields of the settings."""
        loaded = super().load(model, settings, **loading)
        loaded.params = {"model": model, **dict(loaded.settings)}
        return loaded

    @classmethod
    def build(cls, opened: OpenModel, loading: EmbedderSettings) -> Self:
        """Load any BERT; a sentence-transformers folder provides the default settings."""
        sentences = opened.sentences
        loaded = LoadedModel.of(opened)
        head = SentenceHead.build(sentences, loading, opened.config.hidden_size)
        usual = sentences.max_seq_length if sentences else None
        max_length = loaded.choose_length(loading.max_length, usual)
        if (room := max_length - loaded.tokenizer.num_special()) < 1:
            raise SettingsError(f"max_length is {max_length}, which leaves no room for a word")
        return cls(
            opened=opened.without_weights(),
            engine=open_engine(opened, loading, ENCODER, head.layers),
            text_encoder=TextEncoder(
                tokenizer=loaded.tokenizer,
                max_length=max_length,
                stride=loading.cutter(room).stride,
                prompt=find_prompt(sentences, loading),
                lowercase=sentences.lowercase if sentences else False,
                skips_prompt=not head.includes_prompt,
            ),
            head=head,
            settings=loading,
            similarity=(sentences.similarity if sentences else None) or "cosine",
            prompts=sentences.prompts if sentences else {},
        )

    @property
    def dimension(self) -> int:
        """Number of features of a vector."""
        return self.head.dimension

    @cached_property
    def metrics(self) -> Mapping[str, float]:
        """Those of the held-out examples, if `bertkit finetune embed` wrote the model."""
        return read_metrics(self.opened.path)

    @cached_property
    def identity(self) -> dict[str, str | bool | int | None]:
        """Everything that vectors depend on; results and indexes store it with their vectors.

        The engine isn't part of it: in one precision, engines agree within rounding.
        The first access reads the model's files for their SHA-256, which takes a moment.
        """
        encoder = self.text_encoder
        return {
            "model": self.opened.name,
            "model_sha256": self.opened.sha256,
            "vector": self.head.description,
            "dimension": self.dimension,
            "prompt": encoder.prompt,
            "max_length": encoder.max_length,
            "stride": encoder.stride,
            "precision": self.engine.precision,
            "deterministic": self.settings.deterministic,
        }

    def __call__(  # type: ignore[override]  # one array instead of a list
        self,
        inputs: str | Iterable[str],
        /,
        *,
        progress: bool = False,
        counts: TextCounts | None = None,
        **options: Any,
    ) -> Vectors:
        """Compute the vector of a text, `[dimension]`, or of several, `[num_texts, dimension]`.

        Args:
            inputs: one text; or a list, an array, or another iterable of several.
            progress: show a progress bar.
            counts: statistics of several texts, updated.
            options: fields of `EmbedOptions`; other settings are given to `load`.

        Raises:
            InputError: an input isn't a text.
        """
        ready = self.with_options(**options)
        if not is_several(inputs):
            return ready.process_one(cast("str", inputs))
        texts = cast("Sequence[str]", inputs if hasattr(inputs, "__len__") else list(inputs))
        vectors, done = np.empty((len(texts), ready.dimension), dtype=np.float32), 0
        with show_progress("Embedding", len(texts)) if progress else nullcontext() as bar:
            for _, rows in ready.stream_windows(ready.read(texts), counts):
                vectors[done : done + len(rows)] = rows
                done += len(rows)
                if bar is not None:
                    bar.advance(len(rows))
        return vectors

    def change(self, changes: Mapping[str, Any]) -> Self:
        """Change options; the changed embedder shares the engine."""
        changed = super().change(changes)
        options, encoder, head = changed.options, self.text_encoder, self.head
        if options.prompt_name is not None:
            settings = EmbedderSettings(prompt_name=options.prompt_name)
            prompt = find_prompt(self.opened.sentences, settings)
            encoder = dataclasses.replace(encoder, prompt=prompt)
        if options.dimensions is not None:
            head = head.cut(options.dimensions)
        if options.normalize is not None:
            head = head.scaled(is_scaled=options.normalize)
        encoder = dataclasses.replace(encoder, keeps_end=options.keeps_end)
        return dataclasses.replace(changed, text_encoder=encoder, head=head)

    def accept(self, named: NamedInput) -> NamedInput:
        """Return what is a text, or the token ids of one."""
        self.text_encoder.check(named.value)
        return named

    def encode_window(self, inputs: list[NamedInput]) -> EncodedTexts:
        """Encode texts as token ids."""
        return self.text_encoder([named.value for named in inputs])

    def count(self, encoded: EncodedTexts, computed: object = None) -> TextCounts:
        """Return the statistics of a window's texts."""
        return encoded.counts

    def compute_window(self, encoded: EncodedTexts) -> Vectors | list[Vectors]:
        """Compute the vectors of a window of texts, or the last hidden states of their tokens."""
        if not self.options.by_token:
            return self.compute_vectors(encoded)

        def compute(batch: Sequence[list[int]]) -> list[Vectors]:
            ids = PackedIds.from_single(batch)
            states = self.engine(ids)[-1]
            check_finite(states, "the model's features")
            return np.split(states, ids.first_tokens[1:])

        lengths = [len(ids) for ids in encoded.ids]
        return compute_in_batches(encoded.ids, lengths, self.engine.tokens_per_batch, compute)

    @np.errstate(over="ignore", invalid="ignore")  # `check_finite` tells
    def compute_vectors(self, encoded: EncodedTexts) -> Vectors:
        """Compute the vectors of a window of texts."""
        lengths = [len(ids) for ids in encoded.ids]
        budget = 1 if self.settings.deterministic else self.engine.tokens_per_batch

        def pool(chosen: Sequence[int]) -> Vectors:
            ids = PackedIds.from_single([encoded.ids[index] for index in chosen])
            num_skipped = [encoded.num_skipped[index] for index in chosen]
            return self.head.pool(self.engine(ids), Span.of(ids, num_skipped))

        pooled = compute_in_batches(range(len(lengths)), lengths, budget, pool)
        if not pooled:
            return np.empty((0, self.dimension), dtype=np.float32)
        vectors = np.stack(pooled)
        if len(lengths) > encoded.num_texts:
            vectors = average_parts(vectors, encoded)
        if self.settings.deterministic:  # a matrix product's bits depend on its number of rows
            vectors = np.concatenate([self.head.finish(vector[None]) for vector in vectors])
        else:
            vectors = self.head.finish(vectors)
        check_finite(vectors, "the model's vectors")
        return vectors


def average_parts(vectors: Vectors, sequences: EncodedTexts) -> Vectors:
    """Average the vectors of each long text's parts, weighted by their number of tokens.

    The vector of a text with one part is returned unchanged, bit for bit.
    """
    sizes = zip(sequences.ids, sequences.num_skipped, strict=True)
    numbers = [[max(len(ids) - 1 - max(skipped, 1), 1)] for ids, skipped in sizes]
    weights = np.array(numbers, np.float32)
    counts = np.bincount(sequences.owners, minlength=sequences.num_texts)
    num_parts = counts.tolist()
    means = reduce_sequences(vectors * weights, num_parts) / reduce_sequences(weights, num_parts)
    return np.where(counts[:, None] == 1, vectors[counts.cumsum() - counts], means)


def with_prompt(embedder: Embedder, names: Sequence[str], prompt: str | None = None) -> Embedder:
    """Prepend another prompt to each text: the given one, or the model's first of these names.

    The usual one stays if the model has none of them. The changed embedder shares the engine.
    """
    encoder = embedder.text_encoder
    if prompt is None:
        known = embedder.prompts
        prompt = next((known[name] for name in names if name in known), encoder.prompt)
    changed = dataclasses.replace(encoder, prompt=prompt)
    return dataclasses.replace(embedder, text_encoder=changed)


def find_prompt(sentences: SentenceModel | None, settings: EmbedderSettings) -> str:
    """Find the prompt that is prepended to each text."""
    prompts = sentences.prompts if sentences else {}
    if settings.prompt is not None and settings.prompt_name is not None:
        raise SettingsError("prompt and prompt_name exclude each other; give one")
    if settings.prompt is not None:
        return settings.prompt
    name = settings.prompt_name or (sentences.default_prompt if sentences else None)
    if name is None:
        return ""
    if name not in prompts:
        known = json.dumps([*prompts], ensure_ascii=False)
        raise SettingsError(f"this model has no prompt {name!r:.80}. Available prompts: {known}")
    return prompts[name]
