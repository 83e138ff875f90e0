"""Classification by labels that no model has learned.

An encoder compares the vector of a text with that of each label; a classifier of pairs that was
trained on entailment says whether the text entails a sentence with the label.

Source: Yin et al. 2019, "Benchmarking Zero-shot Text Classification", section 5, for entailment.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from bertkit.base.errors import SettingsError
from bertkit.base.progress import announce
from bertkit.base.settings import select
from bertkit.data.problems import announce_unknown
from bertkit.inference.embeddings.embedder import Embedder
from bertkit.inference.embeddings.settings import EmbedderSettings
from bertkit.inference.embeddings.similarity import compare_all
from bertkit.inference.embeddings.transformer import Vectors
from bertkit.inference.loading import LoadedModel
from bertkit.inference.predictor import (
    AnyPredictor,
    Classifier,
    EncodedExamples,
    PredictionCounts,
    Predictor,
)
from bertkit.inference.settings import EngineSettings
from bertkit.inference.stream import EncodedTexts, TextCounts
from bertkit.models.open_model import OpenModel
from bertkit.tasks.batch import Encoded, Logits
from bertkit.tasks.classify import ClassifyAnswers, ClassifySettings
from bertkit.tasks.classify.examples import ClassifyExample
from bertkit.tasks.classify.task import Classify
from bertkit.tasks.classify.zero_shot import ZeroShot
from bertkit.tasks.columns import name_labels
from bertkit.tasks.saved import BY_ARCHITECTURE, find_saved
from bertkit.tasks.settings import does_explain
from bertkit.tasks.texts import Texts

SCALE = 20.0  # of a cosine in a logit, as sentence encoders are trained with
ENTAILMENT = "entailment"  # the label of pairs whose first text entails the second
OF_VECTORS, OF_ENTAILMENT = "The topic is {label}.", "This example is {label}."  # default templates
Examples = EncodedExamples[ClassifyExample]


@dataclass(frozen=True)
class ZeroShotClassifier(Classifier):
    """Base of both: a classifier of single texts, by sentences that stand for its labels."""

    def change(self, changes: Mapping[str, Any]) -> "ZeroShotClassifier":
        """Change options, as in `Predictor`."""
        changed = super().change(changes)
        if does_explain(changed.options):
            raise SettingsError(
                "explain is for a model that learned its labels; leave it out, or train one"
            )
        return changed


@dataclass(frozen=True)
class SimilarLabels(ZeroShotClassifier):
    """Classifies by the cosine of a text's vector and that of each label."""

    embedder: Embedder = field(kw_only=True)
    label_vectors: Vectors = field(kw_only=True)  # `[labels, features]`

    def encode_window(self, inputs: list[ClassifyExample]) -> Examples:
        """Encode texts as the embedder does, with its prompt."""
        encoder = self.embedder.text_encoder
        texts = [encoder.prompt + example.texts.text for example in inputs]
        texts = [text.lower() if encoder.lowercase else text for text in texts]
        read = [replace(one, texts=Texts(text)) for one, text in zip(inputs, texts, strict=True)]
        return EncodedExamples(inputs, self.task.encode(read, encoder.tokenizer))

    def compute_window(self, encoded: Examples) -> list[Logits]:
        """Compute scaled cosines, `[sequences, labels]` of each text."""
        ids = [each.ids for one in encoded.encoded for each in one.sequences]
        encoder, numbers = self.embedder.text_encoder, [*range(len(ids))]
        (prompt,) = encoder.tokenizer.piece_ids([encoder.prompt])
        skipped = [1 + len(prompt) if prompt and encoder.skips_prompt else 0] * len(ids)
        whole = EncodedTexts(ids, numbers, skipped, len(ids), TextCounts())
        vectors = self.embedder.compute_vectors(whole)
        rows = (SCALE * compare_all("cosine", vectors, self.label_vectors)).astype(np.float32)
        ends = accumulate((len(one.sequences) for one in encoded.encoded), initial=0)
        return [rows[start:stop] for start, stop in pairwise(ends)]


@dataclass(frozen=True)
class EntailedLabels(ZeroShotClassifier):
    """Classifies by how much a text entails the sentence of each label."""

    judge: AnyPredictor = field(kw_only=True)  # a classifier of pairs
    sentences: Sequence[str] = field(kw_only=True)  # of each label

    def encode_window(self, inputs: list[ClassifyExample]) -> Examples:
        """Encode each text with the sentence of each label, a sequence for a label."""
        texts = (Texts(one.texts.text, each) for one in inputs for each in self.sentences)
        pairs = self.judge.encode_window([ClassifyExample(each) for each in texts]).encoded
        number = len(self.sentences)
        cut = [pairs[first : first + number] for first in range(0, len(pairs), number)]
        return EncodedExamples(inputs, [join_sequences(own) for own in cut])

    def compute_window(self, encoded: Examples) -> list[Logits]:
        """Compute the logit of entailment, `[1, labels]` of each text."""
        names = [label.casefold() for label in self.judge.task.labels]
        column = names.index(ENTAILMENT)
        return [rows[None, :, column] for rows in self.judge.compute_window(encoded)]

    def count(self, encoded: Examples, computed: object = None) -> PredictionCounts:
        """Count the examples of a window, whose sequences are no windows of a text."""
        return replace(super().count(encoded, computed), windowed=0)


def join_sequences(several: Sequence[Encoded]) -> Encoded:
    """Return one example with the sequences of several."""
    sequences = chain.from_iterable(one.sequences for one in several)
    return Encoded((*sequences,), is_cut=any(one.is_cut for one in several))


def load_zero_shot(
    zero_shot: ZeroShot, model: str | Path | OpenModel | None, loading: EngineSettings
) -> ZeroShotClassifier:
    """Build a classifier of texts for labels, without training.

    Args:
        zero_shot: the labels.
        model: any BERT, or a classifier of pairs with the label entailment; by default the model
            that comes with bertkit.
        loading: how the model is loaded.

    Raises:
        SettingsError: the model is one for another task, or for other labels.
        BertkitError: the model can't be loaded, or knows no word of the labels.
    """
    opened = Embedder.find(model, loading.revision)
    build = build_similar if find_task(opened) is None else build_entailed
    return build(zero_shot, opened, loading.model_copy(update={"revision": None}))


def find_task(opened: OpenModel) -> str | None:
    """Return the task that a model was fine-tuned for; None for an encoder that compares texts."""
    if (saved := find_saved(opened.folder)) is not None:
        return None if saved.task == "embed" else saved.task
    return None if opened.is_sentence_encoder else BY_ARCHITECTURE.get(opened.architecture)


def build_similar(zero_shot: ZeroShot, opened: OpenModel, loading: EngineSettings) -> SimilarLabels:
    """Build a classifier that compares vectors."""
    embedder = Embedder.take(opened, select(EmbedderSettings, loading))
    if not opened.is_sentence_encoder:
        announce(
            f"{opened.title} wasn't trained to compare texts; a sentence encoder does that better"
        )
    counts = TextCounts()
    vectors = embedder(zero_shot.list_sentences(OF_VECTORS), counts=counts)
    announce_unknown(counts.unknown_tokens, counts.text_tokens, "the labels")
    max_length = embedder.text_encoder.max_length
    return SimilarLabels(
        task=Classify(ClassifySettings(max_length=max_length, pairs=False), (*zero_shot.labels,)),
        loaded=LoadedModel.of(opened),
        engine=embedder.engine,
        options=ClassifyAnswers(),
        embedder=embedder,
        label_vectors=vectors,
    )


def build_entailed(
    zero_shot: ZeroShot, opened: OpenModel, loading: EngineSettings
) -> EntailedLabels:
    """Build a classifier that asks which label's sentence a text entails."""
    judge: AnyPredictor = Predictor.take(opened, loading)
    known = judge.task.labels
    if judge.task.name != "classify" or ENTAILMENT not in map(str.casefold, known):
        of = f" with the labels {name_labels(known)}" if known else ""
        raise SettingsError(
            f"{opened.title} is a model for the task {judge.task.name}{of}; other labels need a"
            f" sentence encoder, or a classifier of pairs with the label {ENTAILMENT}"
        )
    settings = judge.task.settings.model_copy(update={"long_texts": "truncate"})
    judge = replace(judge, task=replace(judge.task, settings=settings))
    sentences = zero_shot.list_sentences(OF_ENTAILMENT)
    counts = judge.count(judge.encode_window([ClassifyExample(Texts(each)) for each in sentences]))
    announce_unknown(counts.unknown_tokens, counts.text_tokens, "the labels")
    return EntailedLabels(
        task=Classify(
            ClassifySettings(max_length=settings.max_length, pairs=False), (*zero_shot.labels,)
        ),
        loaded=judge.loaded,
        engine=judge.engine,
        options=ClassifyAnswers(),
        judge=judge,
        sentences=sentences,
    )
