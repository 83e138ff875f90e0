"""Warnings about a finished model whose metrics or outputs look wrong."""

import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence

from bertkit.generation.seq2seq_generator import GenerationCounts
from bertkit.tokenization.settings import TokenizerSettings

MOST_UNFINISHED = 0.02  # warn if a larger share of outputs is stopped at a length limit
# Why references can score 0, by metric.
REASONS = {
    "bleu": "; it counts sequences of four words separated by spaces. Use chrf and the held-out"
    " loss",
}
Metrics = Mapping[str, float]


def warn_of_metric(
    metric: str,
    model_metrics: Metrics,
    copy_metrics: Metrics,
    measure_references: Callable[[], Metrics],
) -> Iterable[str]:
    """Warn if the model isn't better than copying its sources, or if the metric is uninformative.

    Args:
        metric: the metric that selected the best step.
        model_metrics: metrics of the model's outputs.
        copy_metrics: metrics of the beginnings of the sources.
        measure_references: measures the references against themselves; a metric that is 0 there,
            such as BLEU of single words, can't be higher for any model. Called only if needed.
    """
    if model_metrics[metric] > copy_metrics[metric]:
        return
    if measure_references()[metric] == 0.0:
        yield (
            f"{metric} is uninformative here: the references themselves have"
            f" 0{REASONS.get(metric, '')}"
        )
        return
    yield (
        f"{metric} ({model_metrics[metric]:.4f}) isn't above that of copying the beginning of the"
        f" source ({copy_metrics[metric]:.4f}): the model has learned little; give more pairs or a"
        f" larger budget"
    )


def warn_of_best_step(metric: str, values: Sequence[float]) -> Iterable[str]:
    """Warn if a metric was the same at all evaluations and couldn't select the best step.

    Args:
        metric: the metric's name.
        values: its value at each evaluation; the first one is from before the first step.
    """
    trained = values[1:]
    if len(trained) > 1 and min(trained) == max(trained):
        yield (
            f"{metric} was {trained[0]:.4f} at each of {len(trained)} evaluations, so the"
            f" held-out loss selected the best step"
        )


def warn_of_ends(counts: GenerationCounts) -> Iterable[str]:
    """Warn if many outputs didn't end by themselves."""
    if counts.unfinished > MOST_UNFINISHED * counts.texts:
        yield (
            f"{counts.unfinished:,} of {counts.texts:,} answers had no end and were stopped, at"
            " --max-target-length or at three times what was read and 20 tokens more; more training"
            " mends it, or a larger --max-target-length where that stopped them"
        )


def warn_of_letters(settings: TokenizerSettings, texts: Sequence[str]) -> Iterable[str]:
    """Warn if references have capital letters or accents that the vocabulary lacks.

    Args:
        settings: settings of the tokenizer.
        texts: the references.
    """
    missing = []
    if settings.lowercase and any(text != text.lower() for text in texts):
        missing.append("capital letters")
    if settings.strip_accents and any(map(has_accents, texts)):
        missing.append("accents")
    if missing:
        yield (
            f"the vocabulary has no {' and no '.join(missing)}, which the references have, so"
            f" they can't be generated; an encoder whose vocabulary has them (a cased one) writes"
            f" them, or a new"
            " model without --lowercase"
        )


def has_accents(text: str) -> bool:
    """Whether a text has accents that a vocabulary without accents drops."""
    return any(unicodedata.category(char) == "Mn" for char in unicodedata.normalize("NFD", text))
