"""Train a recurrent classifier on labeled texts, from scratch or from a language model."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from bertkit.base.checksums import record_file
from bertkit.base.errors import InputError, SettingsError
from bertkit.checkpoints.file_names import SAFETENSORS_FILE
from bertkit.checkpoints.run_folder import find_checkpoint
from bertkit.data.order import EpochOrder
from bertkit.decoders.seq2seq.token_pairs import Numbers, TokenTexts
from bertkit.nn.packed_ids import plan_batches
from bertkit.nn.packing import PackedBatch
from bertkit.tokenization.names import TOKENIZER_FILES
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.job import Scores
from bertkit_studies.baselines.plan import BaselinePlan, hash_arrays
from bertkit_studies.baselines.run import RecurrentResult, train
from bertkit_studies.baselines.settings import ClassifierSettings
from bertkit_studies.recurrent.classifier import RecurrentClassifier
from bertkit_studies.recurrent.config import ClassifierConfig
from bertkit_studies.recurrent.language_model import RecurrentLanguageModel

TOKENS_PER_BATCH = 4096  # of an evaluation batch


@dataclass(frozen=True)
class LabeledTexts:
    """Texts and their label ids, from 0.

    Raises:
        InputError: the numbers of labels and texts differ, or there is no text.
    """

    texts: TokenTexts
    labels: Numbers

    def __post_init__(self) -> None:
        if len(self.texts) != len(self.labels) or not len(self.labels):
            raise InputError(
                f"expected as many labels as texts, at least one; got {len(self.labels)} and"
                f" {len(self.texts)}"
            )

    @classmethod
    def encode(
        cls, texts: Sequence[str], labels: Sequence[int], tokenizer: Tokenizer, max_length: int
    ) -> Self:
        """Tokenize texts, truncated to `max_length` tokens including [CLS] and [SEP]."""
        numbers = np.array(labels)
        if len(numbers) and numbers.dtype.kind not in "iu":
            raise InputError("labels must be whole numbers from 0; number them, and keep the list")
        return cls(TokenTexts.encode(texts, tokenizer).cut(max_length), numbers.astype(np.int64))

    def pick(self, numbers: Numbers) -> "LabeledBatch":
        """Return the texts with these indices as a batch."""
        return LabeledBatch(
            self.texts.choose(numbers).pack(), torch.from_numpy(self.labels[numbers]), numbers
        )


@dataclass(frozen=True)
class LabeledBatch:
    """A batch of labeled texts.

    Attributes:
        packed: the texts.
        labels: the label id of each text.
        numbers: the indices of the texts in the data.
    """

    packed: PackedBatch
    labels: Int[Tensor, " sequences"]
    numbers: Numbers

    @property
    def num_tokens(self) -> int:
        """Number of tokens in the batch."""
        return self.packed.num_tokens

    @property
    def target_counts(self) -> dict[str, int]:
        """Number of labels of each loss."""
        return {"label": len(self.labels)}

    def describe(self) -> str:
        """Describe the batch for messages: the texts' numbers, from 1."""
        return " ".join(str(number + 1) for number in self.numbers.tolist())

    def to(self, device: torch.device) -> Self:
        """Return the batch on another device."""
        labels = self.labels.to(device, non_blocking=True)
        return replace(self, packed=self.packed.to(device), labels=labels)


@dataclass(frozen=True)
class LabeledData:
    """Training and held-out texts of a classifier.

    Attributes:
        train: the training texts.
        held_out: the evaluation texts.
        num_labels: the number of labels.
        tokenizer: the tokenizer of both.

    Raises:
        InputError: a label is outside 0 … num_labels − 1.
    """

    train: LabeledTexts
    held_out: LabeledTexts
    num_labels: int
    tokenizer: Tokenizer

    def __post_init__(self) -> None:
        for side in (self.train, self.held_out):
            least, most = int(side.labels.min()), int(side.labels.max())
            if least < 0 or most >= self.num_labels:
                raise InputError(
                    f"expected labels from 0 to {self.num_labels - 1}; got {least} to {most}"
                )


def train_classifier(
    data: LabeledData, output: Path, settings: ClassifierSettings, parent: Path | None = None
) -> RecurrentResult:
    """Train a classifier; raises what `run.train` raises.

    Args:
        data: the labeled texts.
        output: the run's folder.
        settings: model and training settings.
        parent: a run of `train_language_model` to start from; None for random weights.
    """
    return train(lambda: plan_classifier(data, settings, parent), output, settings)


def plan_classifier(
    data: LabeledData, settings: ClassifierSettings, parent: Path | None = None
) -> BaselinePlan:
    """Assemble data, net and losses of a run."""
    check_parent(data, settings, parent)
    config = ClassifierConfig(
        vocab_size=data.tokenizer.vocab_size,
        num_labels=data.num_labels,
        **settings.model_dump(include=set(ClassifierConfig.model_fields)),
    )
    order = EpochOrder(len(data.train.labels), settings.batch_size, settings.seed)
    sides = (data.train, data.held_out)
    arrays = [part for side in sides for part in (side.texts.ids, side.texts.offsets, side.labels)]
    lengths = data.held_out.texts.lengths.tolist()

    def begin() -> RecurrentClassifier:
        net = RecurrentClassifier(config)
        if parent is not None:
            language_model = RecurrentLanguageModel.from_pretrained(parent)
            net.warm_start(language_model, freezes=settings.freezes_reader)
        return net

    def load(folder: Path) -> RecurrentClassifier:
        net = RecurrentClassifier.from_pretrained(folder)
        net.reader.requires_grad_(parent is None or not settings.freezes_reader)
        return net

    return BaselinePlan(
        config=config,
        begin=begin,
        load=load,
        tokenizer=data.tokenizer,
        data_fingerprint=hash_arrays(*arrays),
        examples_at=lambda step: order.examples(step).tolist(),
        collate=lambda numbers: data.train.pick(np.array(numbers)),
        num_micro_batches=settings.accumulate,
        held_out=[
            data.held_out.pick(np.array(numbers))
            for numbers in plan_batches(lengths, TOKENS_PER_BATCH)
        ],
        score=score,
        judge=score,
        count_operations=lambda net, batch: net.count_operations(batch.packed),
        progress_metrics={"label_accuracy": "accuracy"},
        source={} if parent is None else describe_parent(parent),
    )


def check_parent(data: LabeledData, settings: ClassifierSettings, parent: Path | None) -> None:
    """Reject a language model with another tokenizer, and freezing random weights."""
    if parent is None:
        if settings.freezes_reader:
            raise SettingsError(
                "freezes_reader freezes the weights of a language model; name one as parent"
            )
        return
    folder = find_checkpoint(parent, reading=TOKENIZER_FILES)
    if Tokenizer.load(folder).fingerprint != data.tokenizer.fingerprint:
        raise InputError(
            f"the language model {parent} has another tokenizer than the texts; encode them with"
            " its own"
        )


def describe_parent(parent: Path) -> dict[str, str]:
    """Identify a language model by the checksum of its weights."""
    folder = find_checkpoint(parent, reading=(SAFETENSORS_FILE,))
    return {"parent": record_file(folder / SAFETENSORS_FILE).sha256}


def score(model: RecurrentClassifier, batch: LabeledBatch) -> Scores:
    """Return the summed loss of a batch and the number of correct predictions."""
    loss, num_hits = model.loss(batch.packed, batch.labels)
    return Scores({"label": loss}, {"label": num_hits})
