"""Evaluation of summaries against reference summaries, with first-sentence and oracle baselines."""

from collections.abc import Sequence

from bertkit.base.wording import pluralize
from bertkit.metrics.summaries import measure_summaries
from bertkit.metrics.words import split_words
from bertkit.tasks.evaluation import Evaluation, Mistake
from bertkit.tasks.extract.examples import ExtractExample
from bertkit.tasks.extract.extraction import Extraction
from bertkit.tasks.extract.oracle import Grams, find_best

MAX_MISTAKES = 100
SHOWN_CHARS = 5000  # shown of a mistake's text


def check_metrics() -> None:
    """Check before training that ROUGE can be computed."""
    measure_summaries(["a"], ["a"])


def measure(
    examples: Sequence[ExtractExample], predictions: Sequence[Extraction]
) -> dict[str, float]:
    """Compute ROUGE-1, ROUGE-2 and ROUGE-L."""
    return measure_summaries([found.summary for found in predictions], list_references(examples))


def evaluate(
    examples: Sequence[ExtractExample], predictions: Sequence[Extraction], num_sentences: int
) -> Evaluation:
    """Compute ROUGE, also for the first and the oracle sentences, and list the worst summaries."""
    references = list_references(examples)
    first = [" ".join(one.candidates.sentences[:num_sentences]) for one in examples]
    best = [choose_best(one, num_sentences) for one in examples]
    metrics = measure(examples, predictions)
    found = {"first_sentences": first, "best_sentences": best}
    for name, summaries in found.items():
        values = measure_summaries(summaries, references)
        metrics |= {f"{metric}_{name}": value for metric, value in values.items()}
    return Evaluation(
        metrics=metrics,
        mistakes=_list_mistakes(examples, predictions, best),
        warnings=_warn(metrics, num_sentences),
    )


def list_references(examples: Sequence[ExtractExample]) -> list[str]:
    """Return the reference summaries; empty texts where there are none."""
    return [example.summary or "" for example in examples]


def choose_best(example: ExtractExample, num_sentences: int) -> str:
    """Return the oracle summary: the sentences with the highest ROUGE."""
    sentences = example.candidates.sentences
    chosen = find_best(sentences, example.summary or "", num_sentences)
    return " ".join(sentences[index] for index in chosen)


def _list_mistakes(
    examples: Sequence[ExtractExample], predictions: Sequence[Extraction], best: Sequence[str]
) -> tuple[Mistake, ...]:
    """List summaries with a lower ROUGE than the oracle's, the largest loss first."""
    mistakes = []
    for example, found, other in zip(examples, predictions, best, strict=True):
        wanted = Grams.of(split_words(example.summary or ""))
        own = Grams.of(split_words(found.summary)).likeness(wanted)
        lost = Grams.of(split_words(other)).likeness(wanted) - own
        text = " ".join(example.candidates.sentences)[:SHOWN_CHARS]
        mistakes.append(Mistake(example.place, text, other, found.summary, lost))
    mistakes.sort(key=lambda mistake: -mistake.badness)
    return tuple(mistake for mistake in mistakes[:MAX_MISTAKES] if mistake.badness > 0.0)


def _warn(metrics: dict[str, float], num_sentences: int) -> tuple[str, ...]:
    """Warn if the model is no better than the first sentences."""
    own, first = metrics["rouge2"], metrics["rouge2_first_sentences"]
    if own > first:
        return ()
    warning = (
        f"rouge2 ({own:.4f}) isn't above that of the first {pluralize(num_sentences, 'sentence')}"
        f" ({first:.4f}); take those, or train on more texts"
    )
    return (warning,)
