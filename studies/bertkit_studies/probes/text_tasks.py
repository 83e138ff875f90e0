"""Labeled tasks built from running text, so that a study needs only shards.

gaps: where were frequent words? The most frequent words, two fifths of the text, are removed from
sentences, and each remaining word is tagged by whether a removed word followed it. The next word
is as informative as the word itself.

pairs: do two sentences come from the same document? They are never adjacent there.

Both are a pure function of the shards. Training examples come from the training split that
models are pre-trained on, held-out examples from the held-out split.
"""

import csv
import io
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from bertkit.base.errors import InputError
from bertkit.base.files import make_folder, write_file
from bertkit.base.progress import announce
from bertkit.data.shards import Shard, ShardSet
from bertkit.tokenization.tokenizer import Tokenizer

GAPS, PAIRS = "gaps", "pairs"
GAP, NO_GAP = "GAP", "NONE"
SMALL_SHARE = 0.4  # of a text's tokens
FEWEST_WORDS = 3  # minimum number of words that remain in a sentence
FEWEST_TOKENS, MOST_TOKENS = 4, 48  # of a sentence
FARTHEST = 8  # sentences between the two of a pair
FEWEST_EXAMPLES = 20
TRIES_PER_EXAMPLE = 200
SEED = 2**30  # for sampling examples, the same in every study
SPLITS = ("train", "dev")

Number = tuple[int, int]  # index of a shard, and of a sentence in it


@dataclass(frozen=True)
class Sentences:
    """Sentences of one split of the shards, sampled with a fixed seed.

    Attributes:
        shards: the shards of the split.
        tokenizer: the shards' tokenizer.
        split: "train" or "dev".
        small_words: the frequent words that the gaps task removes.
    """

    shards: Sequence[Shard]
    tokenizer: Tokenizer
    split: str
    small_words: Set[str] = frozenset()
    _offsets: dict[int, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)

    @cached_property
    def starts(self) -> np.ndarray:
        """The index of each shard's first sentence among all, then the number of all sentences."""
        return np.cumsum([0, *(shard.num_sentences for shard in self.shards)])

    def draw(self, num_tries: int) -> Iterator[Number]:
        """Sample sentences of usable length, without repetition."""
        generator = np.random.default_rng((SEED, SPLITS.index(self.split)))
        seen: set[int] = set()
        for _ in range(num_tries if self.starts[-1] else 0):
            index = int(generator.integers(self.starts[-1]))
            shard = int(np.searchsorted(self.starts, index, side="right")) - 1
            number = shard, index - int(self.starts[shard])
            if index not in seen and self.is_usable(number):
                seen.add(index)
                yield number

    def is_usable(self, number: Number) -> bool:
        """Whether a sentence is neither too short nor too long."""
        start, stop = self._find(number)
        return FEWEST_TOKENS <= stop - start <= MOST_TOKENS

    def ids(self, number: Number) -> list[int]:
        """Return a sentence's token ids."""
        found: list[int] = self.shards[number[0]].tokens(*self._find(number)).tolist()
        return found

    def document(self, number: Number) -> tuple[int, int]:
        """Return the indices of its document's first sentence and of the one after the last."""
        _, documents = self._load(number[0])
        place = int(np.searchsorted(documents, number[1], side="right"))
        return int(documents[place - 1]), int(documents[place])

    def words(self, number: Number) -> list[str]:
        """Return a sentence's words, with pieces joined; empty if it has a special token."""
        words: list[str] = []
        for id_ in self.ids(number):
            if id_ in self.tokenizer.special_ids:
                return []
            piece = self.tokenizer.vocabulary[id_]
            if self.tokenizer.is_continuation[id_] and words:
                words[-1] += piece.removeprefix("##")
            else:
                words.append(piece)
        return words

    def _find(self, number: Number) -> tuple[int, int]:
        offsets, _ = self._load(number[0])
        return int(offsets[number[1]]), int(offsets[number[1] + 1])

    def _load(self, shard: int) -> tuple[np.ndarray, np.ndarray]:
        if shard not in self._offsets:
            source = self.shards[shard]
            self._offsets[shard] = source.sentence_offsets, source.document_offsets
        return self._offsets[shard]


def find_tasks(names: Sequence[str], shards: ShardSet, counts: Mapping[str, int]) -> dict[str, int]:
    """Return the tasks for which the text has enough examples; announce the others.

    Args:
        names: names of the tasks.
        shards: the text.
        counts: number of examples wanted in "train" and "dev".

    Returns:
        The number of held-out examples of each task.
    """
    found: dict[str, int] = {}
    for name in dict.fromkeys(names):
        try:
            made = {split: make_task(name, split, shards, counts[split]) for split in SPLITS}
        except InputError as error:
            announce(f"skipping the task {name}: {error}")
        else:
            _, found[name] = made["dev"]
    return found


def make_task(name: str, split: str, shards: ShardSet, num_examples: int) -> tuple[str, int]:
    """Return the content of a task's file and its number of examples."""
    parts = shards.train if split == "train" else shards.held_out
    tokenizer, (write, _) = shards.load_tokenizer(), TASK_WRITERS[name]
    small_words = find_small_words(shards.token_counts, tokenizer)
    content, num_found = write(Sentences(parts, tokenizer, split, small_words), num_examples)
    if num_found < FEWEST_EXAMPLES:
        raise InputError(
            f"the {'training' if split == 'train' else 'held-out'} text of the shards gives too"
            f" few examples: {num_found}, and {FEWEST_EXAMPLES} are needed at least"
        )
    return content, num_found


def write_text_tasks(
    names: Sequence[str], shards: ShardSet, folder: Path, counts: Mapping[str, int]
) -> dict[str, tuple[Path, Path]]:
    """Write the files of tasks that don't exist yet.

    Args:
        names: names of the tasks.
        shards: the text.
        folder: folder of the files.
        counts: number of examples wanted in "train" and "dev".

    Returns:
        The training and held-out file of each task.
    """
    found = {}
    for name in names:
        _, ending = TASK_WRITERS[name]
        paths = {split: folder / f"{name}-{split}{ending}" for split in SPLITS}
        for split, path in paths.items():
            if not path.exists():
                make_folder(folder)
                content, _ = make_task(name, split, shards, counts[split])
                write_file(path, content.encode())
        found[name] = paths["train"], paths["dev"]
    return found


def find_small_words(counts: np.ndarray, tokenizer: Tokenizer) -> frozenset[str]:
    """Return the most frequent words that make up `SMALL_SHARE` of a text, from token counts."""
    counts = counts.astype(np.int64)
    counts[list(tokenizer.special_ids)] = 0
    order = np.argsort(-counts, kind="stable")
    num_small = int(np.searchsorted(np.cumsum(counts[order]), SMALL_SHARE * counts.sum())) + 1
    chosen = [int(id_) for id_ in order[:num_small] if not tokenizer.is_continuation[id_]]
    return frozenset(tokenizer.vocabulary[id_] for id_ in chosen)


def write_gaps(sentences: Sentences, num_examples: int) -> tuple[str, int]:
    """Return sentences without frequent words, one word and tag per line, and their number."""
    blocks: list[str] = []
    for number in sentences.draw(num_examples * TRIES_PER_EXAMPLE):
        if len(blocks) == num_examples:
            break
        tagged = tag_gaps(sentences.words(number), sentences.small_words)
        if len(tagged) >= FEWEST_WORDS:
            blocks.append("".join(f"{word}\t{tag}\n" for word, tag in tagged))
    return "\n".join(blocks), len(blocks)


def tag_gaps(words: Sequence[str], small_words: Set[str]) -> list[tuple[str, str]]:
    """Remove frequent words; tag each other word by whether a removed word followed it."""
    tagged: list[tuple[str, str]] = []
    for word in words:
        if word not in small_words:
            tagged.append((word, NO_GAP))
        elif tagged:
            tagged[-1] = tagged[-1][0], GAP
    return tagged


def write_pairs(sentences: Sentences, num_examples: int) -> tuple[str, int]:
    """Return CSV rows of two sentences and a label, half of them "same", and their number."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(("sentence1", "sentence2", "label"))
    drawn = sentences.draw(num_examples * TRIES_PER_EXAMPLE)
    num_written = 0
    for number in drawn:
        if num_written == num_examples:
            break
        is_same = num_written % 2 == 0
        other = _find_companion(sentences, number) if is_same else next(drawn, None)
        if other is None or (not is_same and _share_document(sentences, number, other)):
            continue
        texts = [sentences.tokenizer.decode(sentences.ids(each)) for each in (number, other)]
        writer.writerow((*texts, "same" if is_same else "other"))
        num_written += 1
    return stream.getvalue(), num_written


def _find_companion(sentences: Sentences, number: Number) -> Number | None:
    """Return the nearest usable sentence of the same document that isn't adjacent."""
    shard, index = number
    first, stop = sentences.document(number)
    for distance in range(2, FARTHEST + 1):
        for other in (index + distance, index - distance):
            if first <= other < stop and sentences.is_usable((shard, other)):
                return shard, other
    return None


def _share_document(sentences: Sentences, one: Number, other: Number) -> bool:
    return one[0] == other[0] and sentences.document(one) == sentences.document(other)


Writer = Callable[[Sentences, int], tuple[str, int]]
TASK_WRITERS: Mapping[str, tuple[Writer, str]] = {
    GAPS: (write_gaps, ".conll"),
    PAIRS: (write_pairs, ".csv"),
}
KINDS = {GAPS: "tag", PAIRS: "classify"}  # the tasks of `bertkit finetune`
