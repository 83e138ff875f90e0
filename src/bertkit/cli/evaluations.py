"""What an evaluation of a run found, in words."""

from collections.abc import Mapping
from typing import Any

WORDS = {"mlm": "masked", "clm": "next-word", "word": "next-word"}


def describe_metrics(metrics: Mapping[str, Any]) -> str:
    """Loss, accuracies and perplexity, as far as they are there."""
    parts = [f"loss {metrics['loss']:.3f}"]
    for name, words in WORDS.items():
        if f"{name}_accuracy" in metrics:
            perplexity = metrics.get(f"{name}_perplexity")
            more = "" if perplexity is None else f" (perplexity {perplexity:,.1f})"
            parts.append(f"{words} accuracy {metrics[f'{name}_accuracy']:.1%}{more}")
    if "nsp_accuracy" in metrics:
        parts.append(f"next-sentence accuracy {metrics['nsp_accuracy']:.1%}")
    return ", ".join(parts)
