"""Commands that write vectors: embed, features."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from bertkit.base.addresses import show_address
from bertkit.base.errors import SettingsError, pluralize
from bertkit.base.output import check_standard_output
from bertkit.base.parts import PartsSettings
from bertkit.base.progress import announce
from bertkit.cli.next_step import Arguments, read_arguments, repeat_flags, suggest
from bertkit.cli.output import describe_files, format_json, print_result
from bertkit.cli.texts import NamedModel, Words, choose_model, list_problems, name_again
from bertkit.data.file_parts import FilesSettings, check_is_single, is_folder
from bertkit.data.problems import WARNING, append_problems
from bertkit.data.tables.settings import CorpusSettings
from bertkit.inference.settings import EngineSettings
from bertkit.retrieval.settings import EmbedSettings, FeaturesSettings

if TYPE_CHECKING:
    from bertkit.retrieval.embed import EmbedResult
    from bertkit.retrieval.features import FeaturesResult


def embed(
    *inputs: Words,
    model: NamedModel = None,
    output: Path | None = None,
    settings: EmbedSettings = EmbedSettings(),
    files: FilesSettings = FilesSettings(),
    json: bool = False,
) -> None:
    """Embed each text of a file: row n of the output belongs to row n of the input.

    Reads plain text (one text per line), JSONL, CSV, TSV and Parquet, plain or as .gz, .bz2 and
    .zst, in constant memory. Folders, globs and several files are read one after another; .jsonl
    and .parquet then say which file and row a vector belongs to. Writes .npy, .parquet or .jsonl,
    and beside it a .json with the counts and everything that the vectors depend on. The same
    command resumes interrupted work.

    With a folder as --output, each input file has an output of its own, and several processes or
    machines share the files. A rerun makes only what is missing.

    **Examples**

        bertkit embed texts.txt --output vectors.npy

        bertkit embed texts.txt --model all-MiniLM-L6-v2/ --output vectors.npy

        bertkit embed reviews.csv.gz --text-column body --output vectors.parquet

        bertkit embed notes/ --output vectors.jsonl

        bertkit embed long.jsonl --pooling cls --long-texts windows --output vectors.npy

        bertkit embed "texts/*.jsonl" --output vectors/ --workers 2

        bertkit embed "texts/*.jsonl" --output vectors/ --shard 3/16

        echo "One text." | bertkit embed -

    Args:
        inputs: Files, folders or globs of texts, or - for standard input.
        output: File for the vectors: .npy, .parquet or .jsonl; or a folder, for one file per
            input. Without it, they are printed as JSONL, and the summary goes to standard error.
        json: Print the summary as one JSON object.
    """
    if not inputs:
        raise SettingsError("give a file or folder of texts, or - for standard input")
    model = choose_model(model, "vectors", inputs)
    from bertkit.retrieval.embed import embed as run
    from bertkit.retrieval.embed import embed_files, embed_lines

    if output is not None and is_folder(output):
        made = embed_files(model, inputs, output, settings, files)
        print_result(made, describe_files, json=json)
        _suggest_search(model, inputs, settings, json=json or made.num_missing > 0)
        return
    check_is_single(files)
    if output is None:
        check_standard_output()
        if settings.overwrite:
            raise SettingsError("--overwrite needs --output")
        from bertkit.data.tables.text_files import open_text_files
        from bertkit.inference.embeddings.embedder import Embedder

        opened = open_text_files(inputs, settings)
        result = embed_lines(Embedder.load(model, settings), opened, print)
        announce(format_json(result).rstrip() if json else _describe_embedding(result))
    else:
        print_result(run(model, inputs, output, settings), _describe_embedding, json=json)
    _suggest_search(model, inputs, settings, json=json or output is None)


def _suggest_search(
    model: str, texts: Sequence[str], settings: EmbedSettings, *, json: bool
) -> None:
    """Suggest to search the texts that were embedded for one of them."""
    if json:
        return
    from bertkit.data.tables.text_files import open_text_files

    query = read_arguments(
        texts, lambda: ([("", row.text)] for row in open_text_files(texts, settings).rows())
    )
    corpus = [word for text in texts for word in ("--corpus", text)]
    reading = [*repeat_flags(settings, CorpusSettings), *repeat_flags(settings, EngineSettings)]
    words = ["search", *name_again(model), *query, *corpus, *reading]
    suggest(*words, json=not query)


def _describe_embedding(result: "EmbedResult") -> str:
    """Describe what was embedded, and the problems of the texts."""
    counts = result.counts
    rate = f"{result.tokens_per_second:,.0f} per second"
    place = show_address(result.output) if result.output else "standard output"
    line = (
        f"{pluralize(counts.texts, 'text')} → {place}"
        f" [{result.num_rows}, {result.dimension}], {pluralize(counts.tokens, 'token')},"
        f" {'already done' if result.was_done else rate}"
    )
    problems = list_problems(counts, max_length=result.max_length)
    if not counts.texts:
        problems = [f"{WARNING}the input is empty"]
    return append_problems(line, problems, ", ")


# `--layers -1 -2` is one flag with two values; there is no flag for an empty list.
Flags = Parameter(consume_multiple=True, negative_iterable=())


def features(
    *inputs: Words,
    model: NamedModel = None,
    output: Path | None = None,
    settings: Annotated[FeaturesSettings, Flags] = FeaturesSettings(),
    files: PartsSettings = PartsSettings(),
    json: bool = False,
) -> None:
    """Extract the hidden states of each token (T_i) and one vector of each text (C).

    This is the feature-based use of BERT: another model is trained on the features, and BERT isn't
    changed. Reads what `bertkit embed` reads; row n of the output belongs to row n of the input.
    Texts that are too long are truncated and counted. C comes from the model's pooler, or, if it
    has none, is the last layer's [CLS]; the output says which.

    .jsonl has one line per text; .parquet has the same in a quarter of the space, and is written
    several times faster. A .json beside it lists everything that the features depend on.

    **Examples**

        bertkit features texts.txt --output features.parquet

        bertkit features texts.txt --model run/ --layers -1 -2 -3 -4 --combine concat

        bertkit features corpus.jsonl.gz --output features.parquet

        bertkit features pairs.txt --pair-separator " ||| " --combine none --output-format google

        bertkit features texts/ --output features/ --workers 2

    Args:
        inputs: A file of texts, or - for standard input. Several files, folders and globs where
            the output is a folder.
        output: File for the features: .jsonl or .parquet; or a folder, for one file per input.
            Without it, they are printed as JSONL, and the summary goes to standard error.
        json: Print the summary as one JSON object.
    """
    if output is None:
        check_standard_output()
    is_many = is_folder(output)
    model = choose_model(model, "vectors", inputs)
    if not inputs or (len(inputs) > 1 and not is_many):
        wanted = "a file or folder" if is_many else "one file"
        raise SettingsError(f"give {wanted} of texts, or - for standard input")
    from bertkit.retrieval.features import FeatureStream, extract, extract_files, print_features

    if output is not None and is_many:
        made = extract_files(model, inputs, output, settings, files)
        print_result(made, describe_files, json=json)
        return
    check_is_single(files)
    [texts] = inputs
    if output is None:
        if settings.overwrite or settings.output_format == "parquet":
            raise SettingsError("--overwrite and --output-format parquet need --output")
        result = print_features(FeatureStream(model, texts, settings), print)
        announce(format_json(result).rstrip() if json else _describe_features(result))
        return
    result = extract(model, texts, output, settings)
    print_result(result, _describe_features, json=json)
    if not json:
        _suggest_similarity(model, texts, settings)


def _suggest_similarity(model: str, texts: str, settings: FeaturesSettings) -> None:
    """Suggest to compare two of the texts."""
    from bertkit.data.tables.texts import open_texts

    def read_pairs() -> Iterator[Arguments]:
        rows = (row.text for row in open_texts(texts, settings).rows())
        return ([("", one), ("", other)] for one, other in pairwise(rows))

    compared = read_arguments([texts], read_pairs)
    engine = repeat_flags(settings, EngineSettings)
    suggest("similarity", *name_again(model), *compared, *engine, json=not compared)


def _describe_features(result: "FeaturesResult") -> str:
    """Describe what was extracted, and the problems of the texts."""
    output, identity, counts = result.output, result.identity, result.counts
    layers = "layer " + ", ".join(map(str, identity["layers"]))
    line = (
        f"{pluralize(counts.texts, 'text')} → {output or 'standard output'},"
        f" {pluralize(counts.tokens, 'token')} {list(result.shape)} of {layers}"
        f" ({identity['combine']}), C from {identity['sequence_from']},"
        f" {result.tokens_per_second:,.0f} tokens per second"
    )
    problems = list_problems(counts, max_length=identity["max_length"])
    return append_problems(line, problems, ", ")
