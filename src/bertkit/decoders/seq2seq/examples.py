"""Read pairs of texts, split and encode them, count data problems, and warn of odd metrics."""

import stat
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import cast

import numpy as np
import numpy.typing as npt
from pydantic import Field

from bertkit.base.checksums import record_file
from bertkit.base.errors import InputError, pluralize, storage_errors
from bertkit.base.progress import announce
from bertkit.data.input_files import HUB_SCHEME
from bertkit.data.problems import check_unknown, describe_unknown, name_problem
from bertkit.data.tables.rows import Table
from bertkit.decoders.generation.seq2seq_generator import GenerationCounts
from bertkit.decoders.seq2seq.pairs import Pair, PairReport, PairSettings, open_pairs, read_pairs
from bertkit.decoders.seq2seq.settings import MOST_HELD_OUT, Seq2SeqSettings
from bertkit.decoders.seq2seq.token_pairs import TokenPairs, TokenTexts
from bertkit.recipes.model_card import DataCounts
from bertkit.reports.text import format_metric, make_legible
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
            " --max-target-length or at three times what was read and 20 tokens more; more training"
            " mends it, or a larger --max-target-length where that stopped them"
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
HELD_OUT = ", held out"  # suffix of a file's name for its held-out part
MAX_FILES = 2  # per set: sources and targets

Files = tuple[Path, ...]
Pairs = Files | Table  # files by name, or rows from Python, which are no tuple


@dataclass(frozen=True)
class PairSet:
    """The pairs of one or two files, or of rows from Python, or a part of them."""

    name: str  # to show in messages
    sha256: tuple[str, ...]  # of each file, or of the rows
    pairs: list[Pair]
    report: PairReport

    @property
    def sources(self) -> list[str]:
        """The source texts."""
        return [pair.source for pair in self.pairs]

    @property
    def targets(self) -> list[str]:
        """The target texts."""
        return [pair.target for pair in self.pairs]


@dataclass(frozen=True)
class PairData:
    """The training and the held-out pairs."""

    train: PairSet
    dev: PairSet


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


def identify(pairs: Pairs, settings: PairSettings | None = None) -> tuple[str, ...]:
    """Return the SHA-256 of each file, or of the rows."""
    if isinstance(pairs, tuple):
        return tuple(record_file(path).sha256 for path in pairs)
    identity = open_pairs(pairs, settings or PairSettings()).identity()
    assert identity is not None  # only standard input has none
    return (identity["sha256"],)


def read_data(train: Pairs, dev: Pairs | None, settings: Seq2SeqSettings) -> PairData:
    """Read all pairs; without `dev`, hold out a share of the training pairs."""
    learned = read_set(train, settings)
    if dev is None:
        seed = settings.seed if settings.split_seed is None else settings.split_seed
        return hold_out(learned, settings.held_out, seed)
    held_out = read_set(dev, settings, split="dev")
    if held_out.sha256 == learned.sha256:
        announce("--dev is the training data: metrics on it say nothing about other texts")
    return PairData(learned, held_out)


def read_set(given: Pairs, settings: Seq2SeqSettings, *, split: str = "train") -> PairSet:
    """Read all pairs of one or two files, or of rows, and announce counts and problems."""
    files = given if isinstance(given, tuple) else ()
    source = files[0] if files else cast("Table", given)
    pairs, report = read_pairs(source, files[1] if files[1:] else None, settings, split=split)
    for line in report.summary_lines():
        announce(make_legible(line))
    name = " and ".join(path.name for path in files) or split
    return PairSet(name, identify(given, settings), pairs, report)


def hold_out(whole: PairSet, share: float, seed: int) -> PairData:
    """Split off pairs by the seed; those with equal sources stay together."""
    by_source: dict[str, list[Pair]] = {}
    for pair in whole.pairs:
        by_source.setdefault(pair.source, []).append(pair)
    groups = list(by_source.values())
    if len(groups) < MIN_PAIRS:
        raise InputError(
            f"{whole.name} has {len(groups)} distinct source; give held-out pairs with --dev"
        )
    order = np.random.default_rng((seed, HOLDING_OUT)).permutation(len(groups))
    num_pairs = np.cumsum([len(groups[number]) for number in order])
    num_fitting = int((num_pairs <= MOST_HELD_OUT).sum())
    num_held_out = min(max(1, min(round(share * len(groups)), num_fitting)), len(groups) - 1)
    chosen = set(order[:num_held_out].tolist())
    taken = [pair for number in sorted(chosen) for pair in groups[number]]
    kept = [pair for number, group in enumerate(groups) if number not in chosen for pair in group]
    return PairData(
        train=replace(whole, pairs=kept),
        dev=replace(whole, pairs=taken, name=f"{whole.name}{HELD_OUT}"),
    )


def encode_training(
    found: PairSet, tokenizer: Tokenizer, settings: Seq2SeqSettings
) -> tuple[TokenPairs, PairSetCounts]:
    """Encode training pairs as token ids; truncate or skip those that are too long."""
    pairs = encode_pairs(found, tokenizer)
    is_long = find_long(pairs, settings)
    if not is_long.any():
        return pairs, count_set(found, pairs, tokenizer)
    if settings.long_texts == "leave_out":
        if is_long.all():
            raise InputError(
                f"all {len(pairs):,} pairs of {found.name} are longer than max_source_length"
                f" ({settings.max_source_length}) or max_target_length"
                f" ({settings.max_target_length}); raise them, or give --long-texts truncate"
            )
        kept = pairs.choose(np.flatnonzero(~is_long))
        return kept, count_set(found, kept, tokenizer, int(is_long.sum()))
    return cut_pairs(found, pairs, tokenizer, settings)


def encode_held_out(
    found: PairSet, tokenizer: Tokenizer, settings: Seq2SeqSettings
) -> tuple[TokenPairs, PairSetCounts]:
    """Encode held-out pairs as token ids; truncate those that are too long, skip none."""
    return cut_pairs(found, encode_pairs(found, tokenizer), tokenizer, settings)


def encode_pairs(found: PairSet, tokenizer: Tokenizer) -> TokenPairs:
    """Encode pairs as token ids, without truncation."""
    return TokenPairs(
        TokenTexts.encode(found.sources, tokenizer), TokenTexts.encode(found.targets, tokenizer)
    )


def find_long(pairs: TokenPairs, settings: Seq2SeqSettings) -> npt.NDArray[np.bool_]:
    """Return a mask of the pairs that are longer than the settings allow."""
    return (pairs.sources.lengths > settings.max_source_length) | (
        pairs.targets.lengths - 1 > settings.max_target_length
    )


def cut_pairs(
    found: PairSet, pairs: TokenPairs, tokenizer: Tokenizer, settings: Seq2SeqSettings
) -> tuple[TokenPairs, PairSetCounts]:
    """Truncate pairs that are too long; return all pairs and their counts."""
    kept = pairs.cut(settings.max_source_length, settings.max_target_length)
    numbers = {
        "num_cut": int(find_long(pairs, settings).sum()),
        "num_cut_targets": int((kept.targets.lengths < pairs.targets.lengths).sum()),
    }
    return kept, count_set(found, kept, tokenizer).model_copy(update=numbers)


def count_set(
    found: PairSet, kept: TokenPairs, tokenizer: Tokenizer, num_too_long: int = 0
) -> PairSetCounts:
    """Build the counts of a set; it is an `InputError` if no token is in the vocabulary."""
    ids = np.concatenate([kept.sources.ids, kept.targets.ids])
    num_unknown = int((ids == tokenizer.unk_id).sum())
    num_special = int(np.isin(ids, (tokenizer.cls_id, tokenizer.sep_id)).sum())
    check_unknown(found.name, num_unknown, len(ids) - num_special)
    return PairSetCounts(
        name=found.name,
        sha256=found.sha256,
        num_pairs=len(kept),
        num_source_tokens=len(kept.sources.ids),
        num_target_tokens=len(kept.targets.ids) - len(kept),
        num_unknown=num_unknown,
        num_cut=0,
        num_too_long=num_too_long,
        num_over_limit=found.report.num_too_long,
        num_empty=found.report.num_empty,
        num_broken=sum(file.num_broken for file in found.report.files),
        num_undecodable=sum(file.num_undecodable for file in found.report.files),
        num_with_nul=found.report.num_with_nul,
    )


def describe_set(counts: PairSetCounts) -> Sequence[str]:
    """Describe a set in one line, plus a line for each problem."""
    name = counts.name
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
            f"{name}: of {counts.num_cut_targets:,} of them the target was truncated, so its end"
            f" isn't learned; a larger --max-target-length keeps it"
        )
    num_tokens = counts.num_source_tokens + counts.num_target_tokens
    lines += [name_problem(name, line) for line in describe_unknown(counts.num_unknown, num_tokens)]
    return lines
