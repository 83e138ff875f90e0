"""Translations: what an encoder-decoder that was trained to translate writes."""

from typing import ClassVar

from bertkit.generation.seq2seq_file import KindName
from bertkit.generation.seq2seq_generator import GeneratedText as Translation
from bertkit.generation.seq2seq_generator import Seq2SeqGenerator

__all__ = ["Translation", "Translator"]


class Translator(Seq2SeqGenerator):
    """A model of `bertkit finetune translate`; texts → translations."""

    kind: ClassVar[KindName | None] = "translate"
