"""Pairs of texts, each source read once: split and encoded, with warnings of odd metrics."""

import json
import stat
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Self

import numpy as np
from pydantic import Field

from bertkit.base.errors import InputError, pluralize, storage_errors
from bertkit.data.input_files import HUB_SCHEME
from bertkit.data.problems import check_unknown, describe_unknown, name_problem
from bertkit.data.tables.rows import Table
from bertkit.decoders.generation.seq2seq_generator import GenerationCounts
from bertkit.decoders.seq2seq.pairs import Pair, PairReport, read_pairs
from bertkit.decoders.seq2seq.settings import MOST_HELD_OUT, Seq2SeqSettings
from bertkit.decoders.seq2seq.token_pairs import TokenPairs, TokenTexts
from bertkit.recipes.labeled_set import LabeledData, LabeledSet
from bertkit.recipes.model_card import DataCounts
from bertkit.reports.text import format_metric
from bertkit.tokenization.settings import TokenizerSettings
from bertkit.tokenization.tokenizer import Tokenizer

MOST_UNFINISHED = 0.02  # warn if a larger share of outputs is stopped at a length limit
# Why references can score 0, by metric.
REASONS = {
    "bleu": "; it counts sequences of four words separated by spaces. Use chrf and the held-out"
    " loss",
}
Metrics = Mapping[str, float]


def warn_of_metric(
    metric: str,
    model_metrics: Metrics,
    copy_metrics: Metrics,
    measure_references: Callable[[], Metrics],
) -> Iterable[str]:
    """Warn if the model isn't better than copying its sources, or if even the references have 0."""
    if model_metrics[metric] > copy_metrics[metric]:
        return
    if measure_references()[metric] == 0.0:
        yield (
            f"{metric} is uninformative here: the references themselves have"
            f" 0{REASONS.get(metric, '')}"
        )
        return
    yield (
        f"{metric} ({format_metric(metric, model_metrics[metric])}) isn't above that of copying"
        " the beginning of the"
        f" source ({format_metric(metric, copy_metrics[metric])}): the model has learned little;"
        " give more pairs or a"
        f" larger budget"
    )


def warn_of_best_step(metric: str, values: Sequence[float]) -> Iterable[str]:
    """Warn if a metric was the same at each evaluation but the first, before the first step."""
    trained = values[1:]
    if len(trained) > 1 and min(trained) == max(trained):
        yield (
            f"{metric} was {format_metric(metric, trained[0])} at each of {len(trained)}"
            " evaluations, so the"
            f" held-out loss selected the best step"
        )


def warn_of_ends(counts: GenerationCounts) -> Iterable[str]:
    """Warn if many outputs didn't end by themselves."""
    if counts.unfinished > MOST_UNFINISHED * counts.texts:
        yield (
            f"{counts.unfinished:,} of {counts.texts:,} answers had no end and were stopped, at"
            " --max-tokens or at three times what was read and 20 tokens more; more training"
            " mends it, or a larger --max-tokens where that stopped them"
        )


def warn_of_letters(settings: TokenizerSettings, texts: Sequence[str]) -> Iterable[str]:
    """Warn if references have capital letters or accents that the vocabulary lacks."""
    missing = []
    if settings.lowercase and any(text != text.lower() for text in texts):
        missing.append("capital letters")
    # A nonspacing mark (Mn) is what a vocabulary without accents drops.
    letters = chain.from_iterable(unicodedata.normalize("NFD", text) for text in texts)
    if settings.strip_accents and any(unicodedata.category(each) == "Mn" for each in letters):
        missing.append("accents")
    if missing:
        yield (
            f"the vocabulary has no {' and no '.join(missing)}, which the references have, so"
            f" they can't be generated; an encoder whose vocabulary has them (a cased one) writes"
            f" them, or a new"
            " model without --lowercase"
        )


HOLDING_OUT = 6  # the purpose of the random generator; part of its seed
MIN_PAIRS = 2
MAX_FILES = 2  # per set: sources and targets

Files = tuple[Path, ...]
Pairs = Files | Table  # files by name, or rows from Python, which are no tuple


class PairSetCounts(DataCounts):
    """Counts of a set of pairs."""

    files_name = "files"

    sha256: tuple[str, ...]
    num_pairs: int = Field(description="pairs")
    # With [CLS] and [SEP], or end tokens.
    num_source_tokens: int = Field(description="tokens to read")
    num_target_tokens: int = Field(description="tokens to write")
    num_unknown: int = Field(description="tokens that aren't in the vocabulary")
    num_cut: int = Field(description="pairs that were too long and truncated")
    num_cut_targets: int = Field(default=0, description="pairs whose target was truncated")
    num_too_long: int = Field(description="pairs left out because they were too long")
    num_over_limit: int = Field(
        default=0, description="pairs left out because they had over a million characters"
    )
    num_empty: int = Field(description="pairs left out because a side was empty")
    num_broken: int = Field(description="rows left out because they were invalid")
    num_undecodable: int = Field(description="rows with bytes that aren't UTF-8")
    num_with_nul: int = Field(description="pairs with NUL characters, which were removed")

    def describe(self) -> list[str]:
        """Describe a set in one line, plus a line for each problem."""
        name, counts = self.name, self
        sizes = (
            f"{pluralize(counts.num_source_tokens, 'token')} to read and"
            f" {counts.num_target_tokens:,} to write"
        )
        lines = [f"{name}: {pluralize(counts.num_pairs, 'pair')}, {sizes}"]
        if counts.num_too_long:
            lines.append(f"{name}: {pluralize(counts.num_too_long, 'pair')} too long, left out")
        if counts.num_cut:
            lines.append(f"{name}: {pluralize(counts.num_cut, 'pair')} too long, cut")
        if counts.num_cut_targets:
            lines.append(
                f"{name}: of {counts.num_cut_targets:,} of them the target was truncated, so its"
                " end isn't learned; a larger --max-tokens keeps it"
            )
        num_tokens = counts.num_source_tokens + counts.num_target_tokens
        unknown = describe_unknown(counts.num_unknown, num_tokens)
        return lines + [name_problem(name, line) for line in unknown]


def check_files(flag: str, files: Files) -> None:
    """Check that there are one or two regular files, because a resumed run reads them again."""
    if not 1 <= len(files) <= MAX_FILES:
        raise InputError(
            f"--{flag} takes one file with both sides, or one of each side; got {len(files)}"
        )
    for path in files:
        if str(path).startswith(HUB_SCHEME):
            raise InputError(
                f"--{flag} must name files, and {path} is a data set of the Hub; save its pairs to"
                " a file first, such as one of JSONL or Parquet"
            )
        with storage_errors(path, "read"):
            mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            raise InputError(
                f"--{flag} must name files, and {path} is a folder or a pipe; a resumed run reads"
                f" them again"
            )


@dataclass
class PairSet(LabeledSet[Pair, TokenPairs, PairSetCounts]):
    """The pairs of one or two files, or of rows from Python, or a part of them.

    Those that are left out because they are long have no token ids.
    """

    report: PairReport = field(kw_only=True)

    @classmethod
    def read(cls, given: Pairs, settings: Seq2SeqSettings, *, split: str = "train") -> Self:
        """Read all pairs of one or two files, or of rows; those that can't be used are counted."""
        files = given if isinstance(given, tuple) else ()
        source = files[0] if files else given
        pairs, report = read_pairs(source, files[1] if files[1:] else None, settings, split=split)
        name = " and ".join(path.name for path in files) or split
        return cls(name, report.tables, pairs, report=report)

    @property
    def problems(self) -> list[str]:
        """Lines about pairs that were left out or changed."""
        return self.report.summary_lines()

    @property
    def sources(self) -> list[str]:
        """The source texts."""
        return [pair.source for pair in self.examples]

    @property
    def targets(self) -> list[str]:
        """The target texts."""
        return [pair.target for pair in self.examples]

    def hold_out(self, share: float, seed: int) -> tuple[Self, Self]:
        """Split off pairs by the seed; those with equal sources stay together."""
        by_source: dict[str, list[int]] = {}
        for number, pair in enumerate(self.examples):
            by_source.setdefault(pair.source, []).append(number)
        groups = list(by_source.values())
        if len(groups) < MIN_PAIRS:
            raise InputError(
                f"{self.name} has {len(groups)} distinct source; give held-out pairs with --dev"
            )
        order = np.random.default_rng((seed, HOLDING_OUT)).permutation(len(groups))
        num_pairs = np.cumsum([len(groups[number]) for number in order])
        num_fitting = int((num_pairs <= MOST_HELD_OUT).sum())
        num_held_out = min(max(1, min(round(share * len(groups)), num_fitting)), len(groups) - 1)
        chosen = set(order[:num_held_out].tolist())
        kept = (group for number, group in enumerate(groups) if number not in chosen)
        taken = (groups[number] for number in sorted(chosen))
        return self.divide(chain.from_iterable(kept), chain.from_iterable(taken))

    def encode(
        self, tokenizer: Tokenizer, settings: Seq2SeqSettings, *, leaves_out: bool = False
    ) -> TokenPairs:
        """Encode the pairs as token ids, and count them; truncate or skip those that are too long.

        It is an `InputError` if all pairs are skipped, or if no token is in the vocabulary.
        """
        pairs = TokenPairs(
            TokenTexts.encode(self.sources, tokenizer), TokenTexts.encode(self.targets, tokenizer)
        )
        is_long = (pairs.sources.lengths > settings.max_length) | (
            pairs.targets.lengths - 1 > settings.max_tokens
        )
        num_long, changes = int(is_long.sum()), dict[str, int]()
        kept = pairs
        if leaves_out and num_long == len(pairs):
            raise InputError(
                f"all {len(pairs):,} pairs of {self.name} are longer than max_length"
                f" ({settings.max_length}) or max_tokens"
                f" ({settings.max_tokens}); raise them, or give --long-texts truncate"
            )
        if leaves_out and num_long:
            kept, changes["num_too_long"] = pairs.choose(np.flatnonzero(~is_long)), num_long
        elif num_long:
            kept = pairs.cut(settings.max_length, settings.max_tokens)
            is_cut = kept.targets.lengths < pairs.targets.lengths
            changes |= {"num_cut": num_long, "num_cut_targets": int(is_cut.sum())}
        self._encoded = kept
        self._counts = self._count(kept, tokenizer).model_copy(update=changes)
        return kept

    def _count(self, kept: TokenPairs, tokenizer: Tokenizer) -> PairSetCounts:
        ids = np.concatenate([kept.sources.ids, kept.targets.ids])
        num_unknown = int((ids == tokenizer.unk_id).sum())
        num_special = int(np.isin(ids, tokenizer.frame_ids).sum())
        check_unknown(self.name, num_unknown, len(ids) - num_special)
        return PairSetCounts(
            name=self.name,
            sha256=self.sha256,
            num_pairs=len(kept),
            num_source_tokens=len(kept.sources.ids),
            num_target_tokens=len(kept.targets.ids) - len(kept),
            num_unknown=num_unknown,
            num_cut=0,
            num_too_long=0,
            num_over_limit=self.report.num_too_long,
            num_empty=self.report.num_empty,
            num_broken=sum(file.num_broken for file in self.report.files),
            num_undecodable=sum(file.num_undecodable for file in self.report.files),
            num_with_nul=self.report.num_with_nul,
        )


@dataclass(frozen=True)
class PairFiles:
    """The pairs of texts to train on: files, or rows from Python."""

    train: Pairs  # one file of pairs, or one of sources and one of targets
    dev: Pairs | None = None  # None holds out a share of the training pairs

    @property
    def paths(self) -> list[Path]:
        """All files."""
        given = (self.train, self.dev)
        return [path for each in given if isinstance(each, tuple) for path in each]

    def check(self) -> None:
        """Check that all names are files, as in `check_files`."""
        for flag, given in (("train", self.train), ("dev", self.dev)):
            if isinstance(given, tuple):
                check_files(flag, given)


class PairData(LabeledData[PairSet]):
    """The pairs of texts of a run."""

    def __init__(self, files: PairFiles, settings: Seq2SeqSettings) -> None:
        super().__init__(settings)
        self._files, self._settings = files, settings

    def read(self) -> list[PairSet]:
        """Read the training pairs and, if given, the held-out ones."""
        train, dev = PairSet.read(self._files.train, self._settings), self._files.dev
        return [train, *([] if dev is None else [PairSet.read(dev, self._settings, split="dev")])]

    @property
    def fingerprint(self) -> str:
        """What identifies the data in the record of a run."""
        hashes = [each.sha256 for each in self.sets]
        return json.dumps([*hashes, None] if len(hashes) == 1 else hashes)
