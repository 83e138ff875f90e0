"""The task embed: a vector for each text, compared by the cosine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from bertkit.base.errors import InputError
from bertkit.checkpoints.sentence_transformers import SentenceModel
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.poolings import read_sentences
from bertkit.models.open_model import OpenModel
from bertkit.tasks.batch import Encoded, Logits
from bertkit.tasks.embed import DEFAULT_LENGTH, EmbeddingSettings
from bertkit.tasks.embed.examples import EmbedExample
from bertkit.tasks.ranking import RankedQuery, Similarity, SimilarityScoring, score_rankings
from bertkit.tasks.settings import TextSettings
from bertkit.tasks.task import Task
from bertkit.tasks.texts import Texts, encode_texts
from bertkit.tokenization.tokenizer import Tokenizer

if TYPE_CHECKING:
    from bertkit.models.bert.sentence_bert import SentenceBert

QUERY_PROMPTS = ("query",)
PASSAGE_PROMPTS = ("document", "passage", "corpus")


@dataclass(frozen=True)
class Embed(Task[EmbedExample, Any]):
    """Vectors of texts.

    Attributes:
        sentences: modules and settings of the model's folder, once it is known.
        targets: the teacher's vectors by whether a text is a query and by the text; empty without.
    """

    settings: EmbeddingSettings
    sentences: SentenceModel = field(default_factory=lambda: SentenceModel((), DEFAULT_LENGTH))
    targets: Mapping[tuple[bool, str], Logits] = field(
        default_factory=dict, repr=False, compare=False
    )

    name: ClassVar = "embed"
    example_kind: ClassVar = EmbedExample
    architecture: ClassVar = "SentenceBert"
    loss_home: ClassVar = "bertkit.tasks.embed.losses:score_vectors"
    has_windows: ClassVar = False  # a sequence is a text of its own
    has_solvable_head: ClassVar = False
    has_start: ClassVar = True

    @property
    def model_kind(self) -> "type[SentenceBert]":
        """The encoder with the modules of its folder."""
        from bertkit.models.bert.sentence_bert import SentenceBert

        return SentenceBert

    @classmethod
    def from_examples(cls, settings: EmbeddingSettings, examples: Sequence[EmbedExample]) -> Self:
        """Build the task, after checking that there are different scores, or several queries."""
        numbers = {example.number for example in examples}
        is_scored = bool(numbers - {None})
        if is_scored and len(numbers) < 2:
            raise InputError(f"all pairs have the score {numbers.pop():g}; nothing can be learned")
        if not is_scored and len({example.passages[0] for example in examples}) < 2:
            raise InputError(
                "there is no second passage that a query could be told from its own by"
            )
        return cls(settings.model_copy(update={"has_scores": is_scored}))

    @classmethod
    def from_config(
        cls, settings: EmbeddingSettings, config: BertConfig, numbers: Mapping[str, float]
    ) -> Self:
        """Build the task of a trained model."""
        del config
        return cls(settings, numbers=numbers)

    def for_model(self, opened: OpenModel) -> Self:
        """Take prompts and modules from the model, and its length if none is given.

        The prompts of queries and of passages are kept as "query" and "document", too: otherwise
        sentence-transformers would find another one, or none.
        """
        sentences, settings = read_sentences(opened), self.settings
        if "max_length" not in settings.model_fields_set:
            length = min(settings.max_length, sentences.max_seq_length)
            settings = settings.model_copy(update={"max_length": length})
        prompts = {**sentences.prompts, **settings.prompts}
        sentences = replace(sentences, prompts=prompts, max_seq_length=settings.max_length)
        task = replace(self, settings=settings, sentences=sentences)
        used = {
            names[0]: task.find_prompt(sorted(names, key=lambda name: name not in settings.prompts))
            for names in (QUERY_PROMPTS, PASSAGE_PROMPTS)
        }
        if any(used.values()):
            task = replace(task, sentences=replace(sentences, prompts={**prompts, **used}))
        return task

    def find_prompt(self, names: Sequence[str]) -> str:
        """Return the first prompt of these names, else the default one of the model."""
        prompts = self.sentences.prompts
        found = next((name for name in names if name in prompts), self.sentences.default_prompt)
        return "" if found is None else prompts[found]

    def encode(self, examples: Sequence[EmbedExample], tokenizer: Tokenizer) -> list[Encoded]:
        """Encode each text alone, as `[CLS] prompt text [SEP]`; long ones are cut."""
        ask, answer = self.find_prompt(QUERY_PROMPTS), self.find_prompt(PASSAGE_PROMPTS)
        if self.settings.has_scores:
            ask = answer = self.find_prompt(())
        texts = (
            [ask + one.query, *(answer + passage for passage in one.passages)] for one in examples
        )
        read = [text.lower() if self.sentences.lowercase else text for text in chain(*texts)]
        settings = TextSettings(max_length=self.settings.max_length)
        readings = iter(encode_texts([Texts(text) for text in read], settings, tokenizer))
        found = []
        for example in examples:
            own = [next(readings) for _ in (example.query, *example.passages)]
            sequences = tuple(one.sequences[0] for one in own)
            labels = self._find_targets(example)
            found.append(Encoded(sequences, labels, any(one.is_cut for one in own)))
        return found

    def _find_targets(self, example: EmbedExample) -> Logits:
        """Return the teacher's vectors of an example's texts, or its score."""
        if not self.targets:
            return np.array([example.number or 0.0], dtype=np.float32)
        passages = (self.targets[False, text] for text in example.passages)
        return np.stack([self.targets[True, example.query], *passages])

    def decode(
        self, example: EmbedExample, encoded: Encoded, vectors: Logits
    ) -> RankedQuery | Similarity:
        """Rank an example's own passages for its query, or compare both texts of a pair."""
        del encoded
        unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        cosines = unit[1:] @ unit[0]
        if example.number is not None:
            return Similarity(float(cosines[0]))
        relevance = [1.0, *[0.0] * (len(cosines) - 1)]
        return RankedQuery.of(example.query, example.passages, cosines, relevance)

    def score(self, examples: Sequence[EmbedExample], predictions: Sequence[Any]) -> Any:
        """Score rankings, or similarities."""
        if self.settings.has_scores:
            return SimilarityScoring(examples, predictions)
        return score_rankings(examples, predictions)
