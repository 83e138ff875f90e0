"""Summaries that a model writes."""

from typing import ClassVar

from bertkit.decoders.generation.seq2seq_generator import GenerationCounts, Seq2SeqGenerator
from bertkit.decoders.generation.settings import KindName


class AbstractiveSummarizer(Seq2SeqGenerator):
    """Writes abstractive summaries with a model of `bertkit finetune summarize`."""

    kind: ClassVar[KindName | None] = "summarize"
    counts_kind: ClassVar[type[GenerationCounts]] = GenerationCounts
