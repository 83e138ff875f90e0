"""Shards that are missing, exchanged, cut or of another tokenizer are named before a run begins."""

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tests.e2e.small import write_corpus
from tests.letters import prepare_corpus

from bertkit.base.errors import BertkitError, DamagedFileError, MissingFileError
from bertkit.recipes.prepare import work_unit
from bertkit.recipes.pretrain.run import pretrain
from bertkit.recipes.pretrain.settings import PretrainSettings
from bertkit.recipes.train_tokenizer import TrainTokenizerSettings, train_tokenizer

FIRST, SECOND = "train-00000-000", "train-00000-001"
PARTS = ("tokens", "sentences", "documents")
Change = Callable[[Path, Path], None]


@pytest.fixture(scope="module")
def originals(workshop, tmp_path_factory):
    """Shards of several parts, those of another text, and those of another tokenizer."""
    folder = tmp_path_factory.mktemp("wrong")
    train_tokenizer(
        [str(workshop.folder / "books")],
        folder / "tokenizer",
        TrainTokenizerSettings(vocab_size=90, lowercase=False),
    )
    tokenizers = (workshop.folder / "tokenizer",) * 2 + (folder / "tokenizer",)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(work_unit, "SHARD_TOKENS", 1500)
        for number, tokenizer in enumerate(tokenizers):
            seed = number % 2
            write_corpus(folder / "text.txt", 60, seed)
            prepare_corpus(folder / "text.txt", folder / str(number), tokenizer)
    return folder / "0", folder / "1", folder / "2"


def path_of(folder: Path, name: str, part: str) -> Path:
    return folder / "parts" / f"{name}.{part}.npy"


def remove(name: str, folder: Path, _: Path) -> None:
    (folder / name).unlink()


def resize(name: str, change: int, folder: Path, _: Path) -> None:
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[:change] if change < 0 else content + b"\0" * change)


def take(name: str, folder: Path, other: Path) -> None:
    """Put a file or folder of the other shards in the place of ours."""
    if (folder / name).is_dir():
        shutil.rmtree(folder / name)
        shutil.copytree(other / name, folder / name)
    else:
        shutil.copyfile(other / name, folder / name)


def exchange(parts: tuple[str, ...], folder: Path, _: Path) -> None:
    for part in parts:
        first, second = (path_of(folder, name, part) for name in (FIRST, SECOND))
        first.rename(folder / "aside")
        second.rename(first)
        (folder / "aside").rename(second)


TOKENS = f"parts/{FIRST}.tokens.npy"
CASES: list[tuple[Change, type[BertkitError], str]] = [
    (partial(remove, "manifest.json"), MissingFileError, "isn't finished; run the same `bertkit"),
    *(
        (
            partial(remove, f"parts/{FIRST}.{part}.npy"),
            MissingFileError,
            f"{FIRST}.{part}.npy is missing; it had",
        )
        for part in PARTS
    ),
    (partial(remove, "token_counts.npy"), MissingFileError, "token_counts.npy is missing"),
    (partial(remove, "tokenizer/vocab.txt"), MissingFileError, "vocab.txt is missing"),
    (
        partial(remove, "tokenizer/tokenizer_manifest.json"),
        MissingFileError,
        "tokenizer_manifest.json is missing",
    ),
    (partial(resize, TOKENS, -1), DamagedFileError, f"{FIRST}.tokens.npy has"),
    (partial(resize, TOKENS, 4096), DamagedFileError, f"{FIRST}.tokens.npy has"),
    (partial(resize, "manifest.json", -40), DamagedFileError, "manifest.json doesn't end with"),
    (partial(resize, "token_counts.npy", 8), DamagedFileError, "token_counts.npy has"),
    *(
        (partial(exchange, parts), DamagedFileError, f"{FIRST}.{parts[0]}.npy")
        for parts in [*((part,) for part in PARTS), PARTS]
    ),
    (partial(take, TOKENS), DamagedFileError, f"{FIRST}.tokens.npy"),
    (partial(take, "parts"), DamagedFileError, "parts"),
    (partial(take, "token_counts.npy"), DamagedFileError, "token_counts.npy is damaged between"),
    (partial(take, "manifest.json"), DamagedFileError, f"{FIRST}.tokens.npy"),
]
OTHER_TOKENIZER: list[tuple[Change, type[BertkitError], str]] = [
    (partial(take, "tokenizer"), DamagedFileError, "isn't the tokenizer that these shards were"),
    (partial(take, "tokenizer/vocab.txt"), DamagedFileError, "vocab.txt has"),
    (partial(take, "parts"), DamagedFileError, "parts"),
    (partial(take, "token_counts.npy"), DamagedFileError, "token_counts.npy has"),
]


@pytest.mark.parametrize(
    ("change", "kind", "said", "other"),
    [*((*case, 1) for case in CASES), *((*case, 2) for case in OTHER_TOKENIZER)],
)
def test_wrong_shards_are_named_before_a_run_begins(originals, tmp_path, change, kind, said, other):
    data = tmp_path / "shards"
    shutil.copytree(originals[0], data)
    change(data, originals[other])
    with pytest.raises(kind) as caught:
        pretrain(data, tmp_path / "run", PretrainSettings(steps=1))
    message = str(caught.value)
    assert said in message
    assert str(data) in message
    assert len(message.splitlines()) == 1
    assert not (tmp_path / "run").exists()
