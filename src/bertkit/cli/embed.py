"""`bertkit embed`: embed a file of texts."""

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

from cyclopts import Parameter

from bertkit.base.errors import InputError, SettingsError, pluralize
from bertkit.base.output import open_output
from bertkit.base.progress import announce
from bertkit.base.remote import show
from bertkit.cli.output import (
    check_standard_output,
    describe_files,
    format_json,
    print_result,
    repeat_flags,
    suggest,
)
from bertkit.cli.texts import (
    NamedModel,
    Words,
    gather_texts,
    list_problems,
    name_again,
    take_model,
    take_model_and_files,
)
from bertkit.data.file_parts import FilesSettings, check_is_single, is_folder
from bertkit.data.tables.settings import CorpusSettings
from bertkit.inference.embeddings.settings import EmbedderSettings, Similarity
from bertkit.reports.text import format_number
from bertkit.retrieval.settings import EmbedSettings, FeaturesSettings

if TYPE_CHECKING:
    from bertkit.retrieval.embed import EmbedResult
    from bertkit.retrieval.features import FeaturesResult

PROBLEMS = {
    "empty": "empty",
    "unknown_only": "with unknown words only",
    "truncated": "truncated to {max_length} tokens",
    "windowed": "split into windows of {max_length} tokens",
    "with_nul": "with NUL characters, which were removed",
    "undecodable": "with bytes that aren't UTF-8, which were removed",
}


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

        bertkit embed all-MiniLM-L6-v2/ texts.txt --output vectors.npy

        bertkit embed all-MiniLM-L6-v2/ reviews.csv.gz --text-column body --output vectors.parquet

        bertkit embed all-MiniLM-L6-v2/ notes/ --output vectors.jsonl

        bertkit embed run/ long.jsonl --pooling cls --long-texts window --output vectors.npy

        bertkit embed all-MiniLM-L6-v2/ "texts/*.jsonl" --output vectors/ --workers 2

        bertkit embed all-MiniLM-L6-v2/ "texts/*.jsonl" --output vectors/ --shard 3/16

        echo "One text." | bertkit embed all-MiniLM-L6-v2/ -

    Args:
        inputs: Files, folders or globs of texts, or - for standard input; of several arguments, the
            first is the model, unless --model names it.
        output: File for the vectors: .npy, .parquet or .jsonl; or a folder, for one file per
            input. Without it, they are printed as JSONL, and the summary goes to standard error.
        json: Print the summary as one JSON object.
    """
    model, texts = take_model_and_files(inputs, model)
    from bertkit.retrieval.embed import embed as run
    from bertkit.retrieval.embed import embed_files, embed_lines

    if output is not None and is_folder(output):
        made = embed_files(model, texts, output, settings, files)
        print_result(made, describe_files, json=json)
        _suggest_search(model, texts, settings, json=json)
        return
    check_is_single(files)
    if output is None:
        check_standard_output()
        if settings.restart or settings.overwrite:
            raise SettingsError("--restart and --overwrite need --output")
        from bertkit.data.tables.text_files import open_text_files
        from bertkit.inference.embeddings.embedder import Embedder

        opened = open_text_files(texts, settings)
        result = embed_lines(Embedder.load(model, settings), opened, print)
        announce(format_json(result).rstrip() if json else _describe_embedding(result))
    else:
        print_result(run(model, texts, output, settings), _describe_embedding, json=json)
    _suggest_search(model, texts, settings, json=json or output is None)


def _suggest_search(
    model: str, texts: Sequence[str], settings: EmbedSettings, *, json: bool
) -> None:
    """Suggest to search the texts that were embedded."""
    corpus = [word for text in texts for word in ("--corpus", text)]
    reading = repeat_flags(settings, CorpusSettings)
    words = ["search", *name_again(model), "a query", *corpus, *reading]
    suggest(*words, json=json or "-" in texts)


def _describe_embedding(result: "EmbedResult") -> str:
    """Describe what was embedded, and the problems of the texts."""
    counts = result.counts
    rate = f"{result.tokens_per_second:,.0f} per second"
    place = show(result.output) if result.output else "standard output"
    line = (
        f"{pluralize(counts.texts, 'text')} → {place}"
        f" [{result.num_rows}, {result.dimension}], {pluralize(counts.tokens, 'token')},"
        f" {'already done' if result.was_done else rate}"
    )
    problems = ", ".join(list_problems(counts, PROBLEMS, max_length=result.max_length))
    if not counts.texts:
        problems = "WARNING: the input is empty"
    return "; ".join(filter(None, (line, problems)))


# `--layers -1 -2` is one flag with two values; there is no flag for an empty list.
Flags = Parameter(consume_multiple=True, negative_iterable=())


def features(
    *inputs: Words,
    model: NamedModel = None,
    output: Path | None = None,
    settings: Annotated[FeaturesSettings, Flags] = FeaturesSettings(),
    files: FilesSettings = FilesSettings(),
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

        bertkit features run/ texts.txt --layers -1 -2 -3 -4 --combine concat

        bertkit features bert-base/ corpus.jsonl.gz --output features.parquet

        bertkit features run/ pairs.txt --pairs --combine none --layout google --output f.jsonl

        bertkit features run/ texts/ --output features/ --workers 2

    Args:
        inputs: A file of texts, or - for standard input; an argument before it is the model.
            Several files, folders and globs where the output is a folder.
        output: File for the features: .jsonl or .parquet; or a folder, for one file per input.
            Without it, they are printed as JSONL, and the summary goes to standard error.
        json: Print the summary as one JSON object.
    """
    if output is None:
        check_standard_output()
    is_many = is_folder(output)
    model, named = take_model_and_files(inputs, model, takes_several=is_many)
    from bertkit.retrieval.features import (
        FeatureStream,
        check_output,
        extract_files,
        print_features,
        write_features,
    )

    if output is not None and is_many:
        made = extract_files(model, named, output, settings, files)
        print_result(made, describe_files, json=json)
        return
    check_is_single(files)
    [texts] = named

    if output is None:
        result = print_features(FeatureStream(model, texts, settings), print)
        facts = format_json(_list_facts(result)).rstrip()
        announce(facts if json else _describe_features(result))
        return
    check = partial(check_output, texts, settings=settings)
    with open_output(output, "writing features into", inputs=[texts], check=check) as place:
        result = write_features(FeatureStream(model, texts, settings), place)
        print_result(result, _describe_features, json=json, facts=_list_facts(result))
    suggest("similarity", *name_again(model), "The cat slept.", "A cat was asleep.", json=json)


def _list_facts(result: "FeaturesResult") -> dict[str, object]:
    """Return a result as JSON."""
    return {**asdict(result), "tokens_per_second": result.tokens_per_second}


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
    problems = ", ".join(list_problems(counts, PROBLEMS, max_length=identity["max_length"]))
    return "; ".join(filter(None, (line, problems)))


MAX_TEXTS = 1000


def similarity(
    *texts: Words,
    model: NamedModel = None,
    file: Path | None = None,
    similarity: Similarity | None = None,
    settings: EmbedderSettings = EmbedderSettings(),
    json: bool = False,
) -> None:
    """Compute the similarity of two texts, or of each pair of several texts.

    **Examples**

        bertkit similarity "A cat sat down." "The dog lay on the floor."

        bertkit similarity all-MiniLM-L6-v2/ "A cat sat down." "The dog lay on the floor."

        bertkit similarity all-MiniLM-L6-v2/ --file sentences.txt --json

        bertkit similarity run/ "a cat" "a dog" --similarity euclidean --pooling cls

    Args:
        texts: Two or more texts; the first argument may be the model; - reads standard input, one
            text per line.
        file: File with one text per line.
        similarity: Similarity measure; by default that of the model's folder, else cosine.
            Distances are negated: higher is always more similar.
        json: Print one JSON object.
    """
    check_standard_output()
    model, texts = take_model(texts, model, "vectors", num_texts=2, file=file)
    given = [text for _, text in gather_texts(texts, file)]
    if not 2 <= len(given) <= MAX_TEXTS:
        raise InputError(
            f"got {pluralize(len(given), 'text')}; give two, or up to {MAX_TEXTS:,} to compare all"
            " pairs; for more, use `bertkit search`"
        )
    from bertkit.inference.embeddings.embedder import Embedder
    from bertkit.inference.embeddings.similarity import compare_all

    embedder = Embedder.load(model, settings)
    vectors = embedder(given)
    chosen = similarity or cast("Similarity", embedder.similarity)
    scores = compare_all(chosen, vectors, vectors).tolist()
    facts = {"similarity": chosen, "texts": given, "scores": scores}
    print_result(scores, describe_scores, json=json, facts=facts)


def describe_scores(scores: list[list[float]]) -> str:
    """Show the similarity of two texts, or a table of all."""
    if len(scores) == 2:
        return format_number(scores[0][1])
    return "\n".join(" ".join(f"{format_number(one):>7}" for one in row) for row in scores)
