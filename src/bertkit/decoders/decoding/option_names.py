"""Options of decoding under the names that other tools have for them."""

from collections.abc import Mapping
from typing import Any

# Names that transformers and OpenAI have for options of decoding, and ours.
NAMES = {
    "max_new_tokens": "max_tokens",
    "min_new_tokens": "min_tokens",
    "num_beams": "beams",
    "num_return_sequences": "num_answers",
    "n": "num_answers",
    "no_repeat_ngram_size": "no_repeat_ngram",
    "do_sample": "sample",
}
# Values of options that aren't there, at which they change nothing; clients send them unasked.
NEUTRAL = {
    "best_of": 1,
    "frequency_penalty": 0,
    "logit_bias": {},
    "presence_penalty": 0,
    "repetition_penalty": 1,
}
DRAWING = {"temperature", "top_k", "top_p"}


def translate_names(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return options of decoding under our names; whoever says how to draw wants to draw."""
    found = {
        NAMES.get(key, key): value
        for key, value in given.items()
        if value is not None and not (key in NEUTRAL and value == NEUTRAL[key])
    }
    if not DRAWING.isdisjoint(found):
        found.setdefault("sample", True)
    if not found.get("sample"):
        found.pop("seed", None)  # nothing is drawn
    return found
