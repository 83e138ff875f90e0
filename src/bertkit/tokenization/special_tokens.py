"""Special tokens of `tokenizer.json`: the template, the use of each, and added tokens."""

from collections.abc import Mapping
from typing import NamedTuple

from pydantic import JsonValue
from tokenizers import AddedToken

from bertkit.base.errors import InputError
from bertkit.tokenization.encoding import Frame, Template
from bertkit.tokenization.names import CONFIG_FILE, Object, SpecialTokens

MAX_IN_GAP = 4  # special tokens between two texts; published templates have two
# Special tokens that published files list and that no text should become.
CONTROLS = frozenset(
    [
        *("<s>", "<pad>", "</s>", "<unk>", "<mask>", "[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
        *("<s>NOTUSED", "</s>NOTUSED", "<unk>NOTUSED", "<|padding|>", "<|endoftext|>"),
    ]
)
# How special tokens are called that stand in no template.
USUAL_NAMES = {"pad": ("[PAD]", "<pad>"), "unk": ("[UNK]", "<unk>"), "mask": ("[MASK]", "<mask>")}


class NamedFrame(NamedTuple):
    """A frame whose special tokens are names."""

    gaps: tuple[tuple[str, ...], ...]
    types: tuple[int, ...]

    def number(self, ids: Mapping[str, int], source: str) -> Frame:
        """Return the frame with ids."""
        for name in (name for gap in self.gaps for name in gap):
            if name not in ids:
                raise InputError(f"{source}: post_processor has {name!r:.80}, which is no entry")
        return Frame(tuple(tuple(ids[name] for name in gap) for gap in self.gaps), self.types)


Frames = tuple[NamedFrame, NamedFrame]


def read_frames(part: JsonValue, source: str) -> Frames:
    """Return the frames of a single text and of a pair, from the post-processor."""
    kind = part.get("type") if isinstance(part, dict) else part
    if not isinstance(part, dict) or kind not in READERS:
        raise InputError(
            f"{source}: the post_processor is {kind!r:.80}; expected {' or '.join(READERS)}"
        )
    frames = READERS[kind](part, source)
    for frame in frames:
        if not (frame.gaps[0] and frame.gaps[-1]) or max(map(len, frame.gaps)) > MAX_IN_GAP:
            raise InputError(
                f"{source}: post_processor must have special tokens before and behind texts, and"
                f" at most {MAX_IN_GAP} in a place"
            )
    return frames


def _read_bert(part: Object, source: str) -> Frames:
    first, end = (_read_name(part, key, source) for key in ("cls", "sep"))
    return (
        NamedFrame((first, end), (0, 0, 0)),
        NamedFrame((first, end, end), (0, 0, 0, 1, 1)),
    )


def _read_roberta(part: Object, source: str) -> Frames:
    first, end = (_read_name(part, key, source) for key in ("cls", "sep"))
    return (
        NamedFrame((first, end), (0, 0, 0)),
        NamedFrame((first, end + end, end), (0, 0, 0, 0, 0)),
    )


def _read_name(part: Object, key: str, source: str) -> tuple[str]:
    value = part.get(key)
    if not isinstance(value, list) or len(value) != 2 or not isinstance(value[0], str):
        raise InputError(f"{source}: post_processor.{key} must be a token and its id")
    return (value[0],)


def _read_template(part: Object, source: str) -> Frames:
    single, pair = (_read_pieces(part.get(name), name, source) for name in ("single", "pair"))
    if (len(single.gaps), len(pair.gaps)) != (2, 3):
        raise InputError(f"{source}: post_processor must have A in single, and A and B in pair")
    return single, pair


def _read_pieces(pieces: JsonValue, name: str, source: str) -> NamedFrame:
    """Read a template such as `[CLS]:0 $A:0 [SEP]:0`, as objects."""
    gaps, types = [list[str]()], [set[int]()]
    for piece in pieces if isinstance(pieces, list) else [None]:
        kind, value = next(iter(piece.items())) if isinstance(piece, dict) and piece else ("", None)
        token, type_ = (
            (value.get("id"), value.get("type_id")) if isinstance(value, dict) else ("", None)
        )
        if not isinstance(token, str) or type(type_) is not int or type_ not in {0, 1}:
            raise InputError(f"{source}: post_processor.{name} must list tokens and texts")
        if kind == "SpecialToken":
            gaps[-1].append(token)
            types[-1].add(type_)
        elif kind == "Sequence" and token == "AB"[min(len(gaps) - 1, 1)]:
            gaps.append([])
            types += [{type_}, set()]
        else:
            raise InputError(f"{source}: post_processor.{name} must have A, then B")
    if any(len(found) > 1 for found in types):
        raise InputError(f"{source}: special tokens side by side must have one type_id")
    return NamedFrame(tuple(map(tuple, gaps)), tuple(max(found, default=0) for found in types))


READERS = {
    "BertProcessing": _read_bert,
    "RobertaProcessing": _read_roberta,
    "TemplateProcessing": _read_template,
}


def number_frames(frames: Frames, ids: Mapping[str, int], source: str) -> Template:
    """Return the template with ids."""
    return Template(*(frame.number(ids, source) for frame in frames))


def find_special(
    frames: Frames, config: Object, ids: Mapping[str, int], source: str, unknown: str | None
) -> SpecialTokens:
    """Find the special tokens by their use: those of the template, and those that the config names.

    `unknown` is what the model itself writes for what it doesn't know.
    """
    found = dict[str, str]()
    for use, usual in USUAL_NAMES.items():
        value = config.get(f"{use}_token")
        named = value.get("content") if isinstance(value, dict) else value
        choices = (unknown if use == "unk" else None, named, *usual)
        known = [one for one in choices if isinstance(one, str) and one in ids]
        if not known:
            raise InputError(
                f"{source}: no entry is the {use} token; name it in {CONFIG_FILE}, as {use}_token"
            )
        found[use] = known[0]
    single = frames[0].gaps
    return SpecialTokens(cls=single[0][0], sep=single[-1][-1], **found)


class AddedEntry(NamedTuple):
    """An entry of `added_tokens`: found in texts before they are cut into words."""

    content: str
    id: int
    single_word: bool
    lstrip: bool
    rstrip: bool
    normalized: bool
    special: bool

    def build(self) -> AddedToken:
        """Build the token for an engine."""
        _, _, *flags = self._asdict().items()
        return AddedToken(self.content, **dict(flags))


def read_added(listed: JsonValue, source: str) -> list[AddedEntry]:
    """Read the added tokens of a file."""
    entries = []
    flags = ("single_word", "lstrip", "rstrip", "normalized", "special")
    for token in listed or () if isinstance(listed, list | None) else [None]:
        if not isinstance(token, dict):
            raise InputError(f"{source}: added_tokens must be a list of objects")
        content, index = token.get("content"), token.get("id")
        values = [token.get(flag, flag == "normalized") for flag in flags]
        if not isinstance(content, str) or not content or type(index) is not int:
            raise InputError(f"{source}: an added token must have a content and an id")
        if not all(isinstance(value, bool) for value in values):
            raise InputError(f"{source}: {', '.join(flags)} of added tokens must be true or false")
        entries.append(AddedEntry(content, index, *map(bool, values)))
    return entries
