"""A share of counted units, such as 30 of 34 blanks, with its confidence interval."""

import math
from collections.abc import Mapping

from bertkit.base.errors import pluralize
from bertkit.reports.text import MetricCell, format_percent

QUANTILE = 1.959963984540054  # of the normal distribution, for 95 %
COUNT = "count"  # `mlm_count` says how many words `mlm_accuracy` is a share of
# What objectives predict, by the beginning of the names of their metrics.
METRIC_WORDS = {
    "mlm": "masked",
    "clm": "next-word",
    "word": "next-word",
    "nsp": "next-sentence",
}
# What the accuracies of pre-training are shares of.
UNITS = {"mlm": "blank", "clm": "next word", "word": "next word", "nsp": "pair"}


def wilson_interval(share: float, number: float) -> tuple[float, float]:
    """Return the ends of the 95 % interval of a share of independent units.

    Source: Wilson 1927, "Probable Inference, the Law of Succession, and Statistical Inference".
    """
    spread = QUANTILE**2 / number
    middle = (share + spread / 2) / (1 + spread)
    half = QUANTILE * math.sqrt(share * (1 - share) / number + spread / (4 * number)) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)


def show_share(share: float, number: float) -> str:
    """Format the interval of a share, such as 73.4–95.3 %."""
    return MetricCell(share, is_share=True, interval=wilson_interval(share, number)).show_interval()


def describe_share(metrics: Mapping[str, float], name: str) -> str:
    """Describe an accuracy of pre-training: 88.2 % (73.4–95.3 %, 34 blanks).

    Runs of before its number was recorded have the share alone.
    """
    kind = name.removesuffix("_accuracy")
    share, number = metrics[name], metrics.get(f"{kind}_{COUNT}")
    if not number:
        return format_percent(share)
    counted = pluralize(int(number), UNITS[kind])
    return f"{format_percent(share)} ({show_share(share, number)}, {counted})"
