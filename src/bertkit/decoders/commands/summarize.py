"""`bertkit summarize`: sentences of texts, or new ones."""

import sys
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from bertkit.base.errors import SettingsError
from bertkit.base.output import check_standard_output
from bertkit.base.progress import announce, show_progress
from bertkit.cli.output import format_json
from bertkit.cli.texts import Words, choose_model, legible, list_problems
from bertkit.data.problems import append_problems, check_unknown
from bertkit.data.tables.settings import TableSettings
from bertkit.decoders.decoding.settings import DecodingOverrides
from bertkit.decoders.generation.settings import SummarySettings
from bertkit.inference.embeddings.settings import EmbedderSettings

SUMMARY_PROBLEMS = {
    "empty": "without a sentence",
    "whole": "with no more sentences than requested, left whole",
    "limited": "whose summary was limited to 1,000 sentences",
    "truncated_sentences": "sentences truncated because they are too long for the model",
    "truncated": "truncated because they are too long for the model",
    "unfinished": "whose summary reached the maximum length",
}


def summarize(
    *files: Words,
    model: str | None = None,
    settings: SummarySettings = SummarySettings(),
    table: TableSettings = TableSettings(),
    embedding: EmbedderSettings = EmbedderSettings(),
    decoding: DecodingOverrides = DecodingOverrides(),
    json: bool = False,
) -> None:
    """Summarize texts: extract their most central sentences, or generate new ones.

    Any encoder extracts the sentences that are nearest to all others, without training. A model of
    `bertkit finetune summarize` generates a summary; with --num-answers, several per text, one per
    line, the best first.

    A plain text file is one text; in JSONL, CSV, TSV and Parquet, each row is one. All may be .gz,
    .bz2 or .zst.

    **Examples**

        bertkit summarize article.txt --length 3

        bertkit summarize report.txt --model all-MiniLM-L6-v2/ --length "100 words"

        bertkit summarize articles.jsonl --text-column body --model news/ --json

        zcat speech.txt.gz | bertkit summarize - --length 5%

    Args:
        files: Files of texts, or - for standard input.
        model: A run of `bertkit pretrain`, a model folder, or the id of a model of the Hub; by
            default the model that comes with bertkit.
        json: Print one JSON object per text, with the sentences' scores and character positions.
    """
    check_standard_output()
    if not files:
        raise SettingsError("give a file of texts, or - for standard input")
    model = choose_model(model, "vectors", files)
    texts = SummarizedTexts(files, table)
    from bertkit.decoders.generation.summarizer import load_summarizer

    summarizer = load_summarizer(model, embedding, settings, decoding)
    counts = summarizer.counts_kind()
    summaries = summarizer.stream(texts, counts=counts)
    with show_progress("Summarizing", None, is_hidden=sys.stdout.isatty()) as bar:
        for summary in summaries:
            file, row = texts.places.popleft()
            if json:
                facts = {"file": file, "row": row, "summary": summary.text, **asdict(summary)}
                facts.pop("text", None)
                sys.stdout.write(format_json(facts))
            else:
                place = file if row is None else f"{file}, row {row + 1}"
                heading = "" if len(files) == 1 and row is None else f"{place}\n"
                lines = "".join(f"{row['text']}\n" for row in summary.as_rows())
                sys.stdout.write(legible(heading + lines))
            bar.advance(1)
    check_unknown("the input", counts.unknown_tokens, counts.text_tokens)
    problems = list_problems(counts, SUMMARY_PROBLEMS, num_undecodable=texts.num_undecodable)
    if problems or counts.texts > 1:
        announce(append_problems(f"{counts.texts:,} summarized", problems))


class SummarizedTexts:
    """The texts of some files, and where they came from until their summaries are there."""

    def __init__(self, files: Sequence[str], table: TableSettings) -> None:
        from bertkit.data.tables.texts import open_texts

        # an error comes before a model is loaded
        self._tables = [open_texts(file, table) for file in files]
        # file and row, from 0, of those without a summary yet; no row if the file is the text
        self.places: deque[tuple[str, int | None]] = deque()

    def __iter__(self) -> Iterator[str]:
        """Yield one text after the other."""
        for table in self._tables:
            for row, document in enumerate(table.documents()):
                self.places.append((table.name, None if table.format == "text" else row))
                yield document.text

    @property
    def num_undecodable(self) -> int:
        """Number of texts read so far with invalid UTF-8, which became U+FFFD."""
        return sum(table.num_undecodable for table in self._tables)
