"""Options of decoding under the names that other tools have for them."""

from collections.abc import Mapping

from pydantic import JsonValue

from bertkit.decoders.decoding.settings import SAMPLING

# Names that transformers and OpenAI have for options of decoding, and ours.
NAMES = {
    "max_new_tokens": "max_tokens",
    "min_new_tokens": "min_tokens",
    "num_beams": "beams",
    "num_return_sequences": "num_answers",
    "n": "num_answers",
    "no_repeat_ngram_size": "no_repeat_ngram",
}
# Values of options that aren't there, at which they change nothing; clients send them unasked.
NEUTRAL = {
    "best_of": 1,
    "frequency_penalty": 0,
    "logit_bias": {},
    "presence_penalty": 0,
    "repetition_penalty": 1,
}


def translate_names(given: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return options of decoding under our names; `do_sample` sets or drops those of sampling."""
    found = {
        NAMES.get(key, key): value
        for key, value in given.items()
        if value is not None and not (key in NEUTRAL and value == NEUTRAL[key])
    }
    is_sampling = found.pop("do_sample", not found.keys().isdisjoint(SAMPLING))
    if not is_sampling:
        return {key: value for key, value in found.items() if key not in (*SAMPLING, "seed")}
    return {"temperature": 1.0, **found}
