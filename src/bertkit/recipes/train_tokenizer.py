"""The recipe `train-tokenizer`: a corpus → a WordPiece vocabulary."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bertkit.base.checksummed_json import write_checksummed_json
from bertkit.base.errors import InputError, SettingsError
from bertkit.base.files import durable_folder
from bertkit.base.output import list_names, open_output
from bertkit.base.progress import show_progress
from bertkit.data.documents import open_corpus
from bertkit.data.problems import WARNING, ReadReport, describe_long_words, describe_unknown
from bertkit.data.sources import CorpusInput, ReaderSettings
from bertkit.reports.text import format_percent
from bertkit.tokenization.names import CONFIG_FILE, ENGINE_FILE, MANIFEST_FILE, VOCABULARY_FILE
from bertkit.tokenization.settings import VocabularySettings
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.tokenization.training import WordCounts, build_vocabulary, count_unknown, count_words


class TrainTokenizerSettings(VocabularySettings, ReaderSettings):
    """Settings of `bertkit train-tokenizer`."""


FACTS_FILE = "training.json"
NOTED_ACCENTS = 0.01  # of the words: English has fewer with accents, German and French have more
OWN_FILES = {VOCABULARY_FILE, ENGINE_FILE, CONFIG_FILE, MANIFEST_FILE, FACTS_FILE}


@dataclass(frozen=True)
class TrainTokenizerResult:
    """The result of training a tokenizer."""

    folder: Path
    tokenizer: Tokenizer
    word_counts: WordCounts
    report: ReadReport
    elapsed_seconds: float  # including reading

    def list_problems(self) -> list[str]:
        """Return a line for each outcome of reading, and for what the vocabulary doesn't keep."""
        words, lines = self.word_counts, self.report.summary_lines()
        lines += describe_long_words(words.num_in_long, words.num_characters)
        num_unknown = count_unknown(words.counts, self.tokenizer.vocabulary)
        lines += describe_unknown(num_unknown, words.num_words, "word")
        if words.num_accented > NOTED_ACCENTS * words.num_words:
            share = format_percent(words.num_accented / words.num_words)
            lines.append(
                f"{share} of the words have accents, which the tokenizer removes;"
                " --no-strip-accents keeps them"
            )
        return lines


def train_tokenizer(
    inputs: Sequence[CorpusInput],
    output: Path,
    settings: TrainTokenizerSettings = TrainTokenizerSettings(),  # noqa: B008
    *,
    overwrite: bool = False,
) -> TrainTokenizerResult:
    """Train a vocabulary on a corpus, and write its folder atomically.

    The inputs are files, folders, globs, `-`, or texts (`memory_source`). A `SettingsError` says
    that `output` isn't empty or overlaps with an input, or that `vocab_size` is too small for the
    characters.
    """
    started = time.monotonic()
    check = partial(check_output, overwrite=overwrite)
    files = [each for each in inputs if isinstance(each, str)]
    with (
        open_output(output, "training a tokenizer into", inputs=files, check=check) as place,
        durable_folder(place) as folder,  # fails before the work if the folder can't be written
    ):
        check(place)  # again: `durable_folder` may have restored an older folder
        corpus = open_corpus(inputs, settings)
        with show_progress("Counting words", corpus.size_bytes, is_bytes=True) as progress:
            corpus.advance = progress.advance
            lines = (line for document in corpus.documents() for line in document.lines)
            word_counts = count_words(lines, settings)
        if not word_counts.counts:
            reasons = [
                *describe_long_words(word_counts.num_in_long, word_counts.num_characters),
                *corpus.report.summary_lines(),
            ] or ["name input with text"]
            raise InputError(
                "; ".join(
                    reason.removeprefix(WARNING)
                    for reason in ("the input has no words to train a vocabulary on", *reasons)
                )
            )
        with show_progress("Merging pieces", settings.vocab_size) as progress:
            vocabulary = build_vocabulary(word_counts, settings, progress.advance)
        result = TrainTokenizerResult(
            folder=place,
            tokenizer=Tokenizer(vocabulary, settings.tokenizer_settings()),
            word_counts=word_counts,
            report=corpus.report,
            elapsed_seconds=time.monotonic() - started,
        )
        result.tokenizer.save(folder)
        facts = {
            "fingerprint": result.tokenizer.fingerprint,
            "settings": settings.model_dump(mode="json"),
            "inputs": [each if isinstance(each, str) else each.name for each in inputs],
            "counts": summarize(result),
            "read_report": result.report.to_json(),
            "elapsed_seconds": round(result.elapsed_seconds, 3),
        }
        write_checksummed_json(folder / FACTS_FILE, facts)
    return result


def check_output(output: Path, *, overwrite: bool) -> None:
    """Raise `SettingsError` if writing to the output folder would lose files."""
    names = list_names(output)
    foreign_files = sorted(names - OWN_FILES)
    if foreign_files or (names and FACTS_FILE not in names):
        found = (
            ", ".join(foreign_files[:3] + ["…"] * (len(foreign_files) > 3)) or f"no {FACTS_FILE}"
        )
        raise SettingsError(
            f"{output} holds something other than a tokenizer ({found}); name a new folder"
        )
    if names and not overwrite:
        raise SettingsError(f"{output} holds a tokenizer; add --overwrite or name a new folder")


def summarize(result: TrainTokenizerResult) -> dict[str, int]:
    """Return the counts of the corpus and of the vocabulary."""
    words = result.word_counts
    return {
        "entries": result.tokenizer.vocab_size,
        "lines": words.num_texts,
        "characters": words.num_characters,
        "words": words.num_words,
        "distinct_words": len(words.counts),
        "forgotten_words": words.num_forgotten,
        "characters_in_long_words": words.num_in_long,
        "accented_words": words.num_accented,
        "unknown_words": count_unknown(words.counts, result.tokenizer.vocabulary),
    }
