"""Token ids against google's algorithm (`BertTokenizerLegacy`) and against `AutoTokenizer`.

Google's ids are found once, since that is slow, and held against every way of ours.
"""

import gzip
import os
import random
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, product
from pathlib import Path

import pytest
from tests.exhaustive import mark_all_but
from tests.vocabularies import train_vocabulary
from transformers import AutoTokenizer
from transformers.models.bert.tokenization_bert_legacy import BasicTokenizer, BertTokenizerLegacy

from bertkit.recipes.prepare.work_unit import BATCH_CHARACTERS
from bertkit.tokenization.settings import TokenizerSettings, VocabularySettings
from bertkit.tokenization.tokenizer import Tokenizer

SHARED_CORPUS = Path(__file__).resolve().parents[3] / "shared" / "data" / "corpus"
SAMPLE_CHARS_PER_FILE = 20_000
NUM_RANDOM_STRINGS = 50_000  # half of them cased

# Our own sentences; among them final sigma, dotted İ, ẞ, jamo, decomposed accents, joined emoji.
SENTENCES = {
    "latin": "The Größe of Zoë's naïve cafe\u0301, said ẞtraße; İstanbul ılık. ǅ ﬁne ﬀ!",
    "greek": "Η Οδύσσεια γράφτηκε πριν από πολλούς αιώνες, λένε οι σοφοί.",
    "cyrillic": "Ёжик шёл домой, а Їжак ще спав; мост був далеко.",
    "arabic": "ذَهَبَ الوَلَدُ إلى المدرسةِ، ثمّ عاد؛ أليس كذلك؟",
    "hebrew": "הַיֶּלֶד הָלַךְ הביתה, ואז ישן.",
    "devanagari": "बच्चा नदी के पास गया और क़लम वहीं भूल गया।",
    "bengali": "ছেলেটি নদীর ধারে গেল, তারপর ফিরে এল।",
    "tamil": "குழந்தை ஆற்றுக்குப் போனது.",
    "thai": "เด็กเดินไปที่แม่น้ำแล้วกลับบ้าน",
    "hangul": "아이가 강가에 갔다가 \u1112\u1161\u11ab글을 썼다.",
    "japanese": "子どもは川へ行って、ガラスを見た。ﾊﾝｶｸ「はい」と言う。",
    "chinese": "孩子去了河邊,然後回家。㐀𠀀豈",
    "armenian": "Երեխան գնաց գետի մոտ։",
    "georgian": "ბავშვი მდინარესთან წავიდა. ᲐᲑᲒ",
    "amharic": "ልጁ ወደ ወንዙ ሄደ።",
    "emoji": "👩\u200d👧 is a family, 👍🏽 is fine, 🇫🇷 and ❤\ufe0f too. 1\ufe0f\u20e3 ½ ² № ™",
    "spaces": "a\u00a0b\u2003c\u200bd\u00ade\u2028f\tg\x0bh\x1ci\x85j\ufeffk\u3000l",
    "controls": "a\r\nb\x00c\ufffdd\x7fe\x9ff\ue000g\U000e0041h\u061ci",
    "special": "[CLS] is text, [sep] too, ##ing, [UNK]s, and it's—well…e.g. $5.00 a_b C++",
}
SWITCHES = list(product((True, False), repeat=3))


def train(settings: TokenizerSettings) -> Tokenizer:
    wanted = VocabularySettings(vocab_size=1500, min_frequency=1, **settings.model_dump())
    return Tokenizer(train_vocabulary(SENTENCES.values(), wanted), settings)


def legacy_tokenizer(ours: Tokenizer, folder: Path) -> BertTokenizerLegacy:
    ours.save(folder)
    return BertTokenizerLegacy(
        vocab_file=str(folder / "vocab.txt"),
        do_lower_case=ours.settings.lowercase,
        strip_accents=ours.settings.strip_accents,
        tokenize_chinese_chars=ours.settings.split_cjk,
    )


def legacy_ids(reference: BertTokenizerLegacy, text: str) -> list[int]:
    """Google's two steps, without what transformers puts before them: special tokens are text."""
    words = reference.basic_tokenizer.tokenize(text)
    pieces = [piece for word in words for piece in reference.wordpiece_tokenizer.tokenize(word)]
    return reference.convert_tokens_to_ids(pieces)


def is_composed(text: str) -> bool:
    """Whether google's NFC step, which the engine lacks, leaves the cleaned text as it is."""
    return unicodedata.is_normalized("NFC", BasicTokenizer()._clean_text(text))


@pytest.mark.parametrize(("lowercase", "strip_accents", "split_cjk"), SWITCHES)
def test_ids_equal_googles_in_fifteen_scripts(lowercase, strip_accents, split_cjk, tmp_path):
    ours = train(
        TokenizerSettings(lowercase=lowercase, strip_accents=strip_accents, split_cjk=split_cjk)
    )
    reference = legacy_tokenizer(ours, tmp_path)
    texts = [text if strip_accents else compose(text) for text in SENTENCES.values()]
    check_all_ways(ours, texts, [legacy_ids(reference, text) for text in texts])


def check_all_ways(
    ours: Tokenizer, texts: Sequence[str], expected: Sequence[Sequence[int]]
) -> None:
    """Cut texts in all ways there are, and name the first that differ from what is expected."""
    ways = {
        "encode": [ours.encode(text).ids[1:-1] for text in texts],
        "piece_ids": ours.piece_ids(texts),
        "piece_arrays": ours.piece_arrays(texts).to_lists(),
    }
    for way, found in ways.items():
        pairs = zip(texts, found, expected, strict=True)
        differing = [ascii(text) for text, one, other in pairs if one != other]
        assert not differing, f"{way}: {len(differing)} texts, {differing[:3]}"


def compose(text: str) -> str:
    """A text that google's NFC step leaves alone, as the guide tells to prepare it."""
    text = unicodedata.normalize("NFC", text)
    assert is_composed(text)
    return text


@pytest.mark.parametrize(("lowercase", "strip_accents", "split_cjk"), SWITCHES)
def test_the_saved_folder_gives_the_same_ids_in_autotokenizer(
    lowercase, strip_accents, split_cjk, tmp_path
):
    settings = TokenizerSettings(
        lowercase=lowercase, strip_accents=strip_accents, split_cjk=split_cjk
    )
    ours = train(settings)
    ours.save(tmp_path)
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    sentences = [text for script, text in SENTENCES.items() if script != "special"]
    for text, pair in pairwise(sentences):
        expected = theirs(text, pair, return_offsets_mapping=True)
        found = ours.encode(text, pair)
        assert found.ids == expected["input_ids"]
        assert found.token_type_ids == expected["token_type_ids"]
        assert found.offsets == expected["offset_mapping"]
    batch = ours.encode_batch(sentences, max_length=12)
    expected = theirs(sentences, max_length=12, truncation=True, padding=True, return_tensors="np")
    for name in ("input_ids", "token_type_ids", "attention_mask"):
        assert (getattr(batch, name) == expected[name]).all()
    masked = ours.encode("the [MASK] is fine", read_mask=True)
    assert masked.ids == theirs("the [MASK] is fine")["input_ids"]
    assert masked.ids.count(ours.mask_id) == 1


def test_what_transformers_saves_is_loaded(tmp_path):
    ours = train(TokenizerSettings(lowercase=False, strip_accents=False))
    ours.save(tmp_path / "ours")
    AutoTokenizer.from_pretrained(tmp_path / "ours").save_pretrained(tmp_path / "theirs")
    assert Tokenizer.load(tmp_path / "theirs").fingerprint == ours.fingerprint


def test_pairs_are_cut_as_google_cuts_them(tmp_path):
    ours = train(TokenizerSettings())
    reference = legacy_tokenizer(ours, tmp_path)
    texts = ["the", "the family is fine", SENTENCES["greek"]]
    for text, pair, max_length in product(texts, texts, range(3, 24)):
        expected = reference(text, pair, truncation="longest_first", max_length=max_length)
        assert ours.encode(text, pair, max_length=max_length).ids == expected["input_ids"]


@pytest.mark.parametrize("is_cased", mark_all_but([False], [False, True]))
def test_ids_equal_googles_on_random_strings(is_cased, tmp_path):
    ours = train(TokenizerSettings(lowercase=not is_cased, strip_accents=not is_cased))
    reference = legacy_tokenizer(ours, tmp_path)
    generator = random.Random(7)
    compared: dict[str, list[int]] = {}
    for text in random_strings(generator, NUM_RANDOM_STRINGS // 2):
        if is_cased and not is_composed(text):
            continue
        compared[text] = legacy_ids(reference, text)
    check_all_ways(ours, list(compared), list(compared.values()))
    assert len(compared) > 0.4 * NUM_RANDOM_STRINGS


def random_strings(generator: random.Random, count: int) -> Iterator[str]:
    """Strings of characters from all sentences, controls and spaces, in any order."""
    pool = sorted(set("".join(SENTENCES.values())) - {"Σ"})
    pool += [chr(code) for code in range(0x250)] + list(" " * 60)
    for _ in range(count):
        yield "".join(generator.choices(pool, k=generator.randint(1, 24)))


@pytest.mark.shared_data
@pytest.mark.exhaustive
@pytest.mark.skipif(not SHARED_CORPUS.is_dir(), reason="../shared/data isn't here")
@pytest.mark.parametrize("is_cased", [False, True])
def test_ids_equal_googles_on_the_corpus(is_cased, tmp_path):
    """A sample of each file; all of it with BERTKIT_FULL=1."""
    is_full = os.environ.get("BERTKIT_FULL") == "1"
    wanted = VocabularySettings(vocab_size=8000, lowercase=not is_cased, strip_accents=not is_cased)
    vocabulary = train_vocabulary(corpus_lines(SAMPLE_CHARS_PER_FILE), wanted)
    ours = Tokenizer(vocabulary, wanted.tokenizer_settings())
    reference = legacy_tokenizer(ours, tmp_path)
    num_chars = 0
    for lot in gather(corpus_lines(None if is_full else SAMPLE_CHARS_PER_FILE)):
        num_chars += sum(map(len, lot))
        lines = [compose(line) for line in lot] if is_cased else lot
        check_all_ways(ours, lines, [legacy_ids(reference, line) for line in lines])
    assert num_chars > (60_000_000 if is_full else 1_000_000)


def corpus_lines(chars_per_file: int | None) -> Iterator[str]:
    for path in sorted(SHARED_CORPUS.rglob("*.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as stream:
            yield from stream.read(chars_per_file).split("\n")


def gather(lines: Iterable[str]) -> Iterator[list[str]]:
    """Lots of the size in which `prepare` hands its sentences over."""
    lot: list[str] = []
    num_chars = 0
    for line in lines:
        lot.append(line)
        num_chars += len(line)
        if num_chars >= BATCH_CHARACTERS:
            yield lot
            lot, num_chars = [], 0
    yield lot
