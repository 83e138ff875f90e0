"""Translations: what an encoder-decoder that was trained to translate writes."""

from typing import ClassVar

from bertkit.inference.rewriter import Rewriter
from bertkit.inference.rewriter import Rewriting as Translation
from bertkit.inference.rewriter_file import KindName

__all__ = ["Translation", "Translator"]


class Translator(Rewriter):
    """A model of `bertkit finetune translate`; texts → translations."""

    kind: ClassVar[KindName | None] = "translate"
