"""`bertkit prepare`: tokenize raw text for pre-training."""

import json as json_module
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from bertkit.base.wording import pluralize
from bertkit.cli.texts import Words
from bertkit.recipes.prepare.settings import PrepareSettings


def prepare(
    *inputs: Words,
    tokenizer: str,
    output: Path,
    settings: Annotated[PrepareSettings, Parameter(name="*")] = PrepareSettings(),  # noqa: B008
    held_out_inputs: Annotated[tuple[str, ...], Parameter(consume_multiple=True)] = (),
    workers: int | None = None,
    overwrite: bool = False,
    revision: str | None = None,
    json: bool = False,
) -> None:
    """Tokenize raw text into shards for pre-training.

    Reads plain text (one sentence or paragraph per line, a blank line between documents), JSONL,
    Parquet and MediaWiki dumps, plain or as .gz, .bz2 and .zst. The same command resumes
    interrupted work. The output is the same for any number of workers, byte for byte.

    Some documents are held out, drawn by --held-out, to evaluate on what wasn't trained on. If the
    draw holds out none, as happens with few documents, the end of the text is held out.

    **Examples**

        bertkit prepare books/ reviews/ more.jsonl --tokenizer tokenizer/ --output shards/

        bertkit prepare books/ --held-out-inputs books/emma.txt --tokenizer tokenizer/ --output s/

        bertkit prepare my-texts/ --tokenizer google-bert/bert-base-uncased --output my-domain/

        zcat text.gz | bertkit prepare - --tokenizer tokenizer/ --output shards/

    Args:
        inputs: Files, folders or globs; - for standard input.
        tokenizer: Folder that `bertkit train-tokenizer` wrote, a model's folder, a vocab.txt, or
            the id of a model of the Hub.
        output: Folder for the shards.
        settings: The settings of the command.
        held_out_inputs: Inputs to hold out whole, besides --held-out; what they name isn't trained
            on, even if it is in a folder of the other inputs.
        workers: Number of processes; by default one per core.
        overwrite: Replace shards of other inputs or settings.
        revision: Branch, tag or commit, where --tokenizer is a model of the Hub.
        json: Print the result as one JSON object.
    """
    from bertkit.checkpoints.hub import resolve_model
    from bertkit.recipes.prepare.run import prepare as run

    tokenizer_path = resolve_model(tokenizer, revision=revision, for_weights=False)
    result = run(
        inputs,
        tokenizer_path,
        output,
        settings,
        held_out_inputs=held_out_inputs,
        workers=workers,
        overwrite=overwrite,
    )
    manifest = result.manifest
    if json:
        values = manifest.model_dump(mode="json", exclude={"shards", "token_counts"})
        values |= {"was_done": result.was_done, "elapsed_seconds": result.elapsed_seconds}
        print(json_module.dumps(values))
        return
    for name, counts in (("train", manifest.train), ("held-out", manifest.held_out)):
        print(
            f"{name:>8}: {pluralize(counts.documents, 'document'):>20}"
            f" {pluralize(counts.sentences, 'sentence'):>22}"
            f" {pluralize(counts.tokens, 'token'):>22}"
        )
    for line in result.report:
        print(f"    note: {line}")
    megabytes = manifest.raw_bytes / 1e6
    if result.was_done:
        print(f"{output} is already done: {megabytes:,.1f} MB of text")
    else:
        rate = result.bytes_per_second / 1e6
        print(f"{megabytes:,.1f} MB of text in {result.elapsed_seconds:,.1f} s, {rate:,.1f} MB/s")
