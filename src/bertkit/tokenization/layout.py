"""Normalizers and pre-tokenizers of `tokenizer.json` that published encoders have.

Any other is refused by name. The parts are built by the constructors of the `tokenizers` library
from checked values, so that a file can ask for nothing else.
"""

from collections.abc import Mapping

from pydantic import JsonValue
from tokenizers import Regex, normalizers, pre_tokenizers

from bertkit.base.errors import InputError
from bertkit.tokenization.charsmap import decode_charsmap
from bertkit.tokenization.names import Object

MAX_STEPS = 8  # of a sequence of normalizers; published ones have three
SPACES = " {2,}"  # the one regular expression
BLANK = "▁"  # SentencePiece's sign for a space

# For each type of a part, its keys with the values that they may have; none listed: any value.
Known = Mapping[str, Mapping[str, tuple[JsonValue, ...]]]
EITHER = (True, False)

NORMALIZERS: Known = {
    "NFC": {},
    "Precompiled": {"precompiled_charsmap": ()},
    "Strip": {"strip_left": EITHER, "strip_right": EITHER},
    "Replace": {"pattern": ({"Regex": SPACES},), "content": (" ", BLANK)},
}
NORMALIZERS_IN_TURN: Known = {**NORMALIZERS, "Sequence": {"normalizers": ()}}
METASPACE: Known = {
    "Metaspace": {
        "replacement": (BLANK,),
        "str_rep": (BLANK,),
        "add_prefix_space": (True,),
        "prepend_scheme": ("always", "first"),
        "split": (True,),
    }
}
METASPACE_IN_TURN: Known = {**METASPACE, "Sequence": {"pretokenizers": ()}}
BYTE_LEVEL: Known = {
    "ByteLevel": {"add_prefix_space": EITHER, "trim_offsets": EITHER, "use_regex": (True,)}
}


def read_part(part: JsonValue, name: str, source: str, known: Known) -> tuple[str, Object]:
    """Return type and values of a part of the file; InputError if one of them isn't known."""
    kind = part.get("type") if isinstance(part, dict) else part
    if not isinstance(part, dict) or not isinstance(kind, str) or kind not in known:
        raise InputError(
            f"{source}: the {name} is {kind!r:.80}, which no encoder has that bertkit knows;"
            f" expected {' or '.join(known)}"
        )
    values = {key: value for key, value in part.items() if key != "type"}
    for key, value in values.items():
        if key not in known[kind]:
            raise InputError(f"{source}: bertkit doesn't know {key!r:.80} of the {name} {kind}")
        allowed = known[kind][key]
        if allowed and not any(value == one and type(value) is type(one) for one in allowed):
            expected = " or ".join(map(repr, allowed))
            raise InputError(f"{source}: {name}.{key} must be {expected}, got {value!r:.80}")
    return kind, values


def build_normalizer(part: JsonValue, source: str) -> normalizers.Normalizer:
    """Build the normalizer of a file; a sequence holds no other sequence."""
    if part is None:
        return normalizers.Sequence([])
    kind, values = read_part(part, "normalizer", source, NORMALIZERS_IN_TURN)
    if kind != "Sequence":
        return _build_step(part, source)
    steps = values.get("normalizers")
    if not isinstance(steps, list) or len(steps) > MAX_STEPS:
        raise InputError(f"{source}: normalizer.normalizers must list at most {MAX_STEPS} steps")
    return normalizers.Sequence([_build_step(step, source) for step in steps])


def _build_step(part: JsonValue, source: str) -> normalizers.Normalizer:
    kind, values = read_part(part, "normalizer", source, NORMALIZERS)
    if kind == "Precompiled":
        return normalizers.Precompiled(decode_charsmap(values.get("precompiled_charsmap"), source))
    if kind == "Replace":
        return normalizers.Replace(Regex(SPACES), str(values.get("content", " ")))
    if kind == "Strip":
        sides = (values.get("strip_left", True), values.get("strip_right", True))
        return normalizers.Strip(*map(bool, sides))
    return normalizers.NFC()


def build_metaspace(part: JsonValue, source: str) -> pre_tokenizers.PreTokenizer:
    """Build the pre-tokenizer of a Unigram: words at blanks, with `▁` in front."""
    kind, values = read_part(part, "pre_tokenizer", source, METASPACE_IN_TURN)
    if kind == "Metaspace":
        return pre_tokenizers.Metaspace(prepend_scheme=str(values.get("prepend_scheme", "always")))
    steps = values.get("pretokenizers")
    if not isinstance(steps, list) or len(steps) != 2 or steps[0] != {"type": "WhitespaceSplit"}:
        raise InputError(
            f"{source}: pre_tokenizer.pretokenizers must be WhitespaceSplit and Metaspace"
        )
    _, values = read_part(steps[1], "pre_tokenizer", source, METASPACE)
    second = pre_tokenizers.Metaspace(prepend_scheme=str(values.get("prepend_scheme", "always")))
    return pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), second])


def build_byte_level(part: JsonValue, source: str) -> pre_tokenizers.PreTokenizer:
    """Build the pre-tokenizer of a byte-level BPE: GPT-2's words, as bytes."""
    _, values = read_part(part, "pre_tokenizer", source, BYTE_LEVEL)
    prefix = bool(values.get("add_prefix_space", True))
    return pre_tokenizers.ByteLevel(add_prefix_space=prefix, use_regex=True)
