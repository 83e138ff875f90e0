"""Translate texts with an encoder-decoder model."""

from typing import ClassVar

from bertkit.generation.seq2seq_file import KindName
from bertkit.generation.seq2seq_generator import GeneratedText as Translation
from bertkit.generation.seq2seq_generator import Seq2SeqGenerator

__all__ = ["Translation", "Translator"]


class Translator(Seq2SeqGenerator):
    """Translates texts with a model of `bertkit finetune translate`."""

    kind: ClassVar[KindName | None] = "translate"
