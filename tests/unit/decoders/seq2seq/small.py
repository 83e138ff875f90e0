"""Pairs of which the second follows word by word from the first."""

import random
from pathlib import Path

from tests.unit.inference.small import save_small

from bertkit.decoders.seq2seq.examples import PairFiles
from bertkit.decoders.seq2seq.job import Seq2SeqJob
from bertkit.decoders.seq2seq.run import Seq2SeqTraining
from bertkit.decoders.seq2seq.settings import Seq2SeqSettings, TranslateSettings
from bertkit.tokenization.engine import SPECIAL_TOKENS
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.job import Machine

WORDS = {"one": "eins", "two": "zwei", "three": "drei", "four": "vier", "five": "acht"}
# Four evaluations, and perhaps the mean of the last two checkpoints.
QUICK = TranslateSettings(
    steps=80,
    eval_every=20,
    average=2,
    size="1x64",
    vocab_size=64,
    dropout=0.1,
    learning_rate=5e-3,
    tokens_per_batch=300,
    max_length=16,
    max_tokens=16,
    eval_examples=8,
    device="cpu",
)

# The same where nothing has to be learned.
SHORT = QUICK.model_copy(update={"steps": 12, "eval_every": 4, "tokens_per_batch": 160})


def make_pairs(number: int, seed: int) -> list[tuple[str, str]]:
    """Two to four words, and those of the other language."""
    choose = random.Random(seed)
    sources = [choose.choices(list(WORDS), k=choose.randint(2, 4)) for _ in range(number)]
    return [(" ".join(words), " ".join(WORDS[word] for word in words)) for words in sources]


def write_sides(folder: Path, name: str, pairs: list[tuple[str, str]]) -> tuple[Path, Path]:
    """Two files of lines."""
    paths = folder / f"{name}.en", folder / f"{name}.de"
    for path, side in zip(paths, zip(*pairs, strict=True), strict=True):
        path.write_text("".join(f"{text}\n" for text in side), encoding="utf-8")
    return paths


def write_files(folder: Path) -> PairFiles:
    """Some hundred pairs to learn from and twelve that are held out."""
    return PairFiles(
        write_sides(folder, "train", make_pairs(240, 1)),
        write_sides(folder, "dev", make_pairs(12, 2)),
    )


def save_encoder(folder: Path, **changes: object) -> None:
    """An encoder whose vocabulary has the words of both languages."""
    save_small(folder, max_position_embeddings=16, **changes)
    Tokenizer([*SPECIAL_TOKENS, *WORDS, *WORDS.values()]).save(folder)


def open_job(files: PairFiles, settings: Seq2SeqSettings) -> Seq2SeqJob:
    """The job of a run that begins."""
    return Seq2SeqTraining(files, settings).open(None, Machine.choose(settings))
