"""Describe the metrics of a pre-training run."""

from collections.abc import Mapping
from typing import Any

WORDS = {"mlm": "masked", "clm": "next-word", "word": "next-word"}


def describe_metrics(metrics: Mapping[str, Any]) -> str:
    """Describe loss, accuracies and perplexity, those that exist."""
    parts = [f"loss {metrics['loss']:.3f}"]
    for name, words in WORDS.items():
        if f"{name}_accuracy" in metrics:
            perplexity = metrics.get(f"{name}_perplexity")
            more = "" if perplexity is None else f" (perplexity {perplexity:,.1f})"
            parts.append(f"{words} accuracy {metrics[f'{name}_accuracy']:.1%}{more}")
    if "nsp_accuracy" in metrics:
        parts.append(f"next-sentence accuracy {metrics['nsp_accuracy']:.1%}")
    return ", ".join(parts)
