"""Translations: what an encoder-decoder that was trained to translate writes."""

from typing import ClassVar

from bertkit.generation.seq2seq_file import KindName
from bertkit.generation.seq2seq_generator import Rewriter
from bertkit.generation.seq2seq_generator import Rewriting as Translation

__all__ = ["Translation", "Translator"]


class Translator(Rewriter):
    """A model of `bertkit finetune translate`; texts → translations."""

    kind: ClassVar[KindName | None] = "translate"
