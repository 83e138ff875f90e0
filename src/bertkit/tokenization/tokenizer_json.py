"""`tokenizer.json`, the format of the `tokenizers` library, as a definition of a tokenizer."""

from collections.abc import Collection, Mapping
from pathlib import Path

from pydantic import JsonValue
from tokenizers import AddedToken
from tokenizers import Tokenizer as Engine

from bertkit.base.errors import InputError
from bertkit.base.json_files import parse_json
from bertkit.tokenization.definition import Definition
from bertkit.tokenization.engine import build_engine
from bertkit.tokenization.names import OF_BERT, Kind, Object
from bertkit.tokenization.piece_tables import PieceFile
from bertkit.tokenization.special_tokens import (
    CONTROLS,
    Frames,
    find_special,
    number_frames,
    read_added,
    read_frames,
)
from bertkit.tokenization.vocabulary import check_entries, check_vocabulary
from bertkit.tokenization.word_piece import read_switches, read_word_pieces

BERT_PROCESSING: Object = {
    "type": "BertProcessing",
    "cls": [OF_BERT.cls, 0],
    "sep": [OF_BERT.sep, 0],
}


def read_definition(text: str, config: Object, path: Path) -> Definition:
    """Read the text of a `tokenizer.json`, beside the content of `tokenizer_config.json`.

    Raises:
        DamagedFileError: it isn't JSON.
        InputError: it asks for what no encoder has that bertkit knows.
    """
    content, source = parse_json(text, str(path)), str(path)
    if not isinstance(content, dict):
        raise InputError(f"{source} holds a {type(content).__name__}; expected a JSON object")
    kind = find_kind(content, source)
    if kind != "WordPiece":
        return _define_pieces(kind, text, content, config, source)
    entries = read_word_pieces(content, source)
    frames = _read_frames(content, source)
    is_of_bert = frames == _read_frames({}, source)
    if is_of_bert:
        check_vocabulary(entries, source)
    ids = check_entries(entries, source)
    controls = set(OF_BERT if is_of_bert else CONTROLS)
    for one in read_added(content.get("added_tokens"), source):
        check_added(source, one.content, one.id, ids, controls)
    settings = read_switches(path.parent, content, config, entries)
    if is_of_bert:
        return Definition.of_bert(entries, settings)
    return Definition(
        kind,
        tuple(entries),
        find_special(frames, config, ids, source, OF_BERT.unk),
        frozenset(controls & ids.keys()),
        frozenset(),
        number_frames(frames, ids, source),
        settings,
        source=text,
        config=config,
    )


def find_kind(content: Object, source: str) -> Kind:
    """Return the algorithm of a file; WordPiece stands for those that its reader refuses."""
    model = content.get("model")
    if not isinstance(model, dict):
        return "WordPiece"
    kind = model.get("type")
    if kind == "WordLevel":
        raise InputError(
            f"{source} is a WordLevel tokenizer, as models without pieces of words have; bertkit"
            " reads WordPiece, Unigram and byte-level BPE"
        )
    if "type" not in model:  # as in files of 2020
        kind = "Unigram" if "unk_id" in model else "BPE" if "merges" in model else None
    return "Unigram" if kind == "Unigram" else "BPE" if kind == "BPE" else "WordPiece"


def _read_frames(content: Object, source: str) -> Frames:
    """Return the frames of a file; one without a post-processor has BERT's."""
    return read_frames(content.get("post_processor") or BERT_PROCESSING, source)


def _define_pieces(
    kind: Kind, text: str, content: Object, config: Object, source: str
) -> Definition:
    file = PieceFile.read(kind, content, source)
    frames = read_frames(content.get("post_processor"), source)
    special = find_special(frames, config, file.ids, source, file.table.unknown)
    listed = frozenset(one.content for one in file.added)
    controls = frozenset(special) | (listed & CONTROLS)
    return Definition(
        kind,
        tuple(file.entries),
        special,
        controls,
        listed - controls,
        number_frames(frames, file.ids, source),
        file=file,
        source=text,
        config=config,
    )


def start_engine(definition: Definition, *, reads_mask: bool = False) -> Engine:
    """Build the engine of a tokenizer, which treats strings such as `[SEP]` as plain text.

    One that `reads_mask` finds the mask in texts.
    """
    mask = definition.special.mask
    if definition.kind == "WordPiece":
        engine = build_engine(definition.vocabulary, definition.settings)
        if reads_mask:
            engine.add_special_tokens([AddedToken(mask, normalized=False, special=True)])
        return engine
    assert definition.file is not None
    controls = definition.controls - {mask} if reads_mask else definition.controls
    return definition.file.build_engine(controls)


def check_added(
    source: str,
    content: JsonValue,
    entry: JsonValue,
    ids: Mapping[str, int],
    known: Collection[str] | None,
) -> None:
    """Reject an added token that isn't the entry it says, or that isn't among the known ones."""
    if str(ids.get(str(content))) != str(entry):
        raise InputError(
            f"{source}: the added token {content!r:.80} isn't entry {entry!r:.80} of the"
            " vocabulary; bertkit doesn't support tokens outside of it"
        )
    if known is not None and content not in known:
        raise InputError(
            f"{source}: the added token {content!r:.80} isn't one of BERT's special tokens, and"
            " bertkit would split it into pieces; remove it there if that is intended"
        )
