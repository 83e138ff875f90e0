"""Translate texts with an encoder-decoder model."""

from typing import ClassVar

from bertkit.inference.generation.seq2seq_generator import GeneratedText as Translation
from bertkit.inference.generation.seq2seq_generator import Seq2SeqGenerator
from bertkit.inference.generation.settings import KindName

__all__ = ["Translation", "Translator"]


class Translator(Seq2SeqGenerator):
    """Translates texts with a model of `bertkit finetune translate`."""

    kind: ClassVar[KindName | None] = "translate"
