"""Small tokenizers of each published kind, trained on a sentence in many languages.

The layouts are those of the published `tokenizer.json` files: normalizers, pre-tokenizers,
templates, and the places of special tokens. They are written as JSON, and `tokenizers` reads them.
"""

import base64
import json
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.charsmaps import build_charsmap
from tests.trained_pieces import Pair, train_byte_pairs, train_unigram, train_word_pieces
from tokenizers import normalizers

Layout = dict[str, Any]

# Article 1 of the Universal Declaration of Human Rights, and what texts have beside words.
TEXTS = {
    "en": "All human beings are born free and equal in dignity and rights.",
    "de": "Alle Menschen sind frei und gleich an Würde und Rechten geboren.",
    "fr": "Tous les êtres humains naissent libres et égaux en dignité et en droits.",
    "ru": "Все люди рождаются свободными и равными в своём достоинстве и правах.",
    "el": "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια.",
    "ar": "يولد جميع الناس أحرارًا متساوين في الكرامة والحقوق.",
    "he": "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם.",
    "hi": "सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता प्राप्त है।",
    "zh": "人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心。",
    "ja": "すべての人間は、生まれながらにして自由であり、尊厳と権利とについて平等である。",
    "ko": "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.",
    "th": "มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ",
    "vi": "Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm.",
    "tr": "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar.",
    "marks": "It's 3.14 % of $1,299.00 (e.g. A/B-tests); don't «quote» 100 km² 😀 ﬁne Ａ①!",
}
BASIC_SPECIALS = ["<s>", "<pad>", "</s>", "<unk>"]
CAMEMBERT_SPECIALS = ["<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED", "<s>", "</s>"]
BYTE_LEVEL = {
    "type": "ByteLevel",
    "add_prefix_space": False,
    "trim_offsets": True,
    "use_regex": True,
}
METASPACE = {
    "type": "Metaspace",
    "replacement": "▁",
    "prepend_scheme": "always",
    "split": True,
}
# As files of before 2024 have it.
OLD_METASPACE = {
    "type": "Metaspace",
    "replacement": "▁",
    "str_rep": "▁",
    "add_prefix_space": True,
}
# Of transformers, where it reads the file as it is.
TOKENIZER_CLASSES = {
    "bert": "BertTokenizer",
    "mpnet": "MPNetTokenizer",
    "roberta": "RobertaTokenizer",
    "xlm-roberta": "XLMRobertaTokenizer",
    "camembert": "CamembertTokenizer",
}
BERT_NORMALIZER = {
    "type": "BertNormalizer",
    "clean_text": True,
    "handle_chinese_chars": True,
    "strip_accents": None,
    "lowercase": True,
}


def make_tokenizer(folder: Path, kind: str) -> Path:
    """Write `tokenizer.json` and `tokenizer_config.json` of a kind, and return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    layout, names, max_length = KINDS[kind]()
    (folder / "tokenizer.json").write_text(json.dumps(layout, ensure_ascii=False))
    kind_class = TOKENIZER_CLASSES.get(kind, "PreTrainedTokenizerFast")
    config = {**names, "model_max_length": max_length, "tokenizer_class": kind_class}
    (folder / "tokenizer_config.json").write_text(json.dumps(config))
    return folder


def bert() -> tuple[Layout, dict[str, str], int]:
    """BERT's WordPiece, also that of DistilBERT and ELECTRA."""
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = number([*specials, *train_word_pieces(TEXTS.values())])
    layout = build_layout(
        model=word_piece(vocabulary, "[UNK]"),
        added=[added(token, vocabulary[token]) for token in specials],
        normalizer=BERT_NORMALIZER,
        pre_tokenizer={"type": "BertPreTokenizer"},
        post_processor=template("[CLS]", ["[SEP]"], vocabulary, second_type=1),
        decoder={"type": "WordPiece", "prefix": "##", "cleanup": True},
    )
    return layout, name_tokens(*specials), 512


def mpnet() -> tuple[Layout, dict[str, str], int]:
    """MPNet's WordPiece: RoBERTa's special tokens and template, and an [UNK] among the words."""
    vocabulary = number([*BASIC_SPECIALS, "[UNK]", *train_word_pieces(TEXTS.values()), "<mask>"])
    layout = build_layout(
        model=word_piece(vocabulary, "[UNK]"),
        added=[
            *(added(token, vocabulary[token]) for token in ["<s>", "<pad>", "</s>"]),
            added("<unk>", vocabulary["<unk>"], normalized=True),
            added("[UNK]", vocabulary["[UNK]"]),
            added("<mask>", vocabulary["<mask>"], lstrip=True),
        ],
        normalizer=BERT_NORMALIZER,
        pre_tokenizer={"type": "BertPreTokenizer"},
        post_processor=roberta_processing(),
        decoder={"type": "WordPiece", "prefix": "##", "cleanup": True},
        truncation={"max_length": 128, "strategy": "LongestFirst", "stride": 0},
        padding={
            "strategy": {"Fixed": 128},
            "direction": "Right",
            "pad_to_multiple_of": None,
            "pad_id": 1,
            "pad_type_id": 0,
            "pad_token": "<pad>",
        },
    )
    return layout, name_tokens("<pad>", "[UNK]", "<s>", "</s>", "<mask>"), 512


def roberta() -> tuple[Layout, dict[str, str], int]:
    """RoBERTa's byte-level BPE; all special tokens are in the model's vocabulary, too."""
    pieces, merges = train_byte_pairs(TEXTS.values())
    vocabulary = number([*BASIC_SPECIALS, *pieces, "<mask>"])
    layout = build_layout(
        model=byte_pairs(vocabulary, merges, prefix=""),
        added=[
            *(added(token, vocabulary[token], normalized=True) for token in BASIC_SPECIALS),
            added("<mask>", vocabulary["<mask>"], lstrip=True),
        ],
        normalizer=None,
        pre_tokenizer=BYTE_LEVEL,
        post_processor=roberta_processing(),
        decoder={**BYTE_LEVEL, "add_prefix_space": True},
    )
    return layout, name_tokens("<pad>", "<unk>", "<s>", "</s>", "<mask>"), 512


def modernbert() -> tuple[Layout, dict[str, str], int]:
    """ModernBERT's byte-level BPE: NFC, and tokens added behind it, also runs of spaces."""
    pieces, merges = train_byte_pairs(map(normalizers.NFC().normalize_str, TEXTS.values()))
    vocabulary = number(["|||IP_ADDRESS|||", "<|padding|>", *pieces])
    spaces = [" " * length for length in range(24, 1, -1)]
    plain = [*spaces, "|||EMAIL_ADDRESS|||", "|||PHONE_NUMBER|||"]
    specials = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"]
    behind = [*plain, "<|endoftext|>", *specials, "[unused0]", "[unused1]"]
    ids = vocabulary | number(behind, len(vocabulary))
    special = {"<|padding|>", "<|endoftext|>", *specials}
    layout = build_layout(
        model=byte_pairs(vocabulary, merges, prefix=None),
        added=[
            added(
                token,
                ids[token],
                normalized=token not in special,
                special=token in special,
                lstrip=token == "[MASK]",
            )
            for token in ["|||IP_ADDRESS|||", "<|padding|>", *behind]
        ],
        normalizer={"type": "NFC"},
        pre_tokenizer=BYTE_LEVEL,
        post_processor=template("[CLS]", ["[SEP]"], ids),
        decoder=BYTE_LEVEL,
    )
    unknown, classify, separate, pad, mask = specials
    return layout, name_tokens(pad, unknown, classify, separate, mask), 8192


def xlm_roberta() -> tuple[Layout, dict[str, str], int]:
    """XLM-R's Unigram, also that of the multilingual MiniLM."""
    return unigram(BASIC_SPECIALS, precompiled(), in_sequence(OLD_METASPACE), 512)


def bge_m3() -> tuple[Layout, dict[str, str], int]:
    """XLM-R's Unigram as a later converter wrote it."""
    normalizer = in_turn(precompiled(), replace_spaces(" "))
    return unigram(BASIC_SPECIALS, normalizer, METASPACE, 8192)


def camembert() -> tuple[Layout, dict[str, str], int]:
    """CamemBERT's Unigram, whose first tokens aren't used."""
    strip = {"type": "Strip", "strip_left": False, "strip_right": True}
    normalizer = in_turn(precompiled(), strip, replace_spaces("▁"))
    return unigram(CAMEMBERT_SPECIALS, normalizer, in_sequence(METASPACE), 512)


KINDS: dict[str, Callable[[], tuple[Layout, dict[str, str], int]]] = {
    "bert": bert,
    "mpnet": mpnet,
    "roberta": roberta,
    "modernbert": modernbert,
    "xlm-roberta": xlm_roberta,
    "bge-m3": bge_m3,
    "camembert": camembert,
}


def unigram(
    specials: list[str], normalizer: Layout, pre_tokenizer: Layout, max_length: int
) -> tuple[Layout, dict[str, str], int]:
    """A Unigram tokenizer: special tokens first, the mask last."""
    scores = [(token, 0.0) for token in specials]
    scores += [
        (piece, score) for piece, score in train_unigram(TEXTS.values()) if piece not in specials
    ]
    scores.append(("<mask>", 0.0))
    ids = number([piece for piece, _ in scores])
    layout = build_layout(
        model={"type": "Unigram", "unk_id": 3, "vocab": scores},
        added=[
            *(added(token, ids[token]) for token in specials),
            added("<mask>", ids["<mask>"], lstrip=True),
        ],
        normalizer=normalizer,
        pre_tokenizer=pre_tokenizer,
        post_processor=template("<s>", ["</s>", "</s>"], ids),
        decoder=METASPACE,
    )
    return layout, name_tokens("<pad>", "<unk>", "<s>", "</s>", "<mask>"), max_length


def build_layout(**parts: Any) -> Layout:
    """A `tokenizer.json`, in the order of keys that `tokenizers` writes."""
    first = {"version": "1.0", "truncation": None, "padding": None}
    keys = ["added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder", "model"]
    parts["added_tokens"] = parts.pop("added")
    return {**first, **{key: parts[key] for key in [*parts.keys() & first.keys(), *keys]}}


def number(tokens: list[str], first: int = 0) -> dict[str, int]:
    return {token: first + index for index, token in enumerate(tokens)}


def added(token: str, id_: int, **options: bool) -> Layout:
    """An entry of `added_tokens`; special unless it says otherwise."""
    settings = {"single_word": False, "lstrip": False, "rstrip": False}
    return {
        "id": id_,
        "content": token,
        **settings,
        "normalized": False,
        "special": True,
        **options,
    }


def name_tokens(pad: str, unknown: str, classify: str, separate: str, mask: str) -> dict[str, str]:
    """The special tokens under the names of `tokenizer_config.json`."""
    tokens = {"pad": pad, "unk": unknown, "cls": classify, "sep": separate, "mask": mask}
    return {f"{name}_token": token for name, token in tokens.items()}


def word_piece(vocabulary: dict[str, int], unknown: str) -> Layout:
    settings = {"continuing_subword_prefix": "##", "max_input_chars_per_word": 100}
    return {"type": "WordPiece", "unk_token": unknown, **settings, "vocab": vocabulary}


def byte_pairs(vocabulary: dict[str, int], merges: list[Pair], prefix: str | None) -> Layout:
    """A BPE model; published files write each merge as one string."""
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": prefix,
        "end_of_word_suffix": prefix,
        "fuse_unk": False,
        "vocab": vocabulary,
        "merges": [" ".join(pair) for pair in merges],
    }


def roberta_processing() -> Layout:
    settings = {"trim_offsets": True, "add_prefix_space": False}
    return {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0], **settings}


def template(first: str, between: list[str], ids: dict[str, int], second_type: int = 0) -> Layout:
    """A template: `first` A `between` B, and the last separator at the end."""

    def special(token: str, type_: int = 0) -> Layout:
        return {"SpecialToken": {"id": token, "type_id": type_}}

    def sequence(name: str, type_: int) -> Layout:
        return {"Sequence": {"id": name, "type_id": type_}}

    last = between[-1]
    middle = [special(token) for token in between]
    single = [special(first), sequence("A", 0), special(last)]
    second = [sequence("B", second_type), special(last, second_type)]
    return {
        "type": "TemplateProcessing",
        "single": single,
        "pair": [special(first), sequence("A", 0), *middle, *second],
        "special_tokens": {
            token: {"id": token, "ids": [ids[token]], "tokens": [token]} for token in (first, last)
        },
    }


def in_turn(*steps: Layout) -> Layout:
    return {"type": "Sequence", "normalizers": list(steps)}


def in_sequence(metaspace: Layout) -> Layout:
    return {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, metaspace]}


def replace_spaces(content: str) -> Layout:
    return {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": content}


def precompiled() -> Layout:
    """A normalizer of SentencePiece's: NFKC of what isn't a letter, and blanks as spaces."""
    blanks = dict.fromkeys("\t\n\r\u00a0\u2009\u3000", " ")
    ranges = [
        range(0xFF01, 0xFF5F),
        range(0xFB00, 0xFB07),
        range(0x2460, 0x2474),
        range(0xFF66, 0xFF9E),
    ]
    characters = [chr(code) for each in ranges for code in each] + ["²", "½", "™", "…"]
    compatible = {one: unicodedata.normalize("NFKC", one) for one in characters}
    charsmap = build_charsmap({**blanks, **compatible})
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap).decode()}
