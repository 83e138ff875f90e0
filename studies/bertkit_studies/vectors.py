"""Commands of `bertkit study` that train word and sentence vectors from before BERT."""

import json as json_module
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from bertkit.base.errors import SettingsError
from bertkit.base.extras import require_torch
from bertkit.base.output import check_standard_output, open_output
from bertkit.base.signals import stop_at_once
from bertkit.cli.next_step import describe_next
from bertkit.cli.texts import Words, list_texts, printable
from bertkit_studies.baselines.settings import SkipGramSettings, SkipThoughtSettings
from bertkit_studies.next_word import describe_training

if TYPE_CHECKING:
    from bertkit.data.shards import ShardSet
    from bertkit_studies.recurrent.word_vectors import StaticVectors

STOPPED = "stopped while loading; run the same command again"
MAX_LENGTH = 512  # tokens of a sentence to encode; longer ones are truncated
TELLING_LETTERS = 5  # most shorter words are function words


def skip_gram(
    *,
    data: Path,
    output: Path,
    settings: SkipGramSettings = SkipGramSettings(),
    json: bool = False,
) -> None:
    """Train skip-gram word vectors (word2vec), for comparison with those of a BERT.

    `bertkit nearest` reads the folder. Each entry of the vocabulary has one
    vector, whatever the sentence; a word that the vocabulary splits is the mean of its pieces.

    Training takes minutes and starts over if it is interrupted; a finished folder is left as it is.

    **Examples**

        bertkit study skip-gram --data shards/ --output skip-gram/

        bertkit nearest river --model skip-gram/

        bertkit nearest "king - man + woman" --model skip-gram/

    Args:
        data: Folder that `bertkit prepare` wrote, to train on.
        output: Folder for the vectors.
        json: Print one JSON object.
    """
    require_torch("`bertkit study skip-gram`")
    with stop_at_once(lambda: STOPPED):
        from bertkit.data.shards import ShardSet
        from bertkit_studies.baselines.word_vectors import train_word_vectors

    with open_output(output, "training in", inputs=[data], is_workplace=True) as place:
        net = train_word_vectors(data, place, settings)
    sys.stdout.write(describe_vectors(net, ShardSet.open(data), output, settings, json=json))


def describe_vectors(
    net: "StaticVectors",
    shards: "ShardSet",
    output: Path,
    settings: SkipGramSettings,
    *,
    json: bool,
) -> str:
    """Format how many entries have a vector, and a word to try, as text or JSON."""
    has_vector = net.embeddings.weight.any(dim=1).numpy()
    num_vectors, size = int(has_vector.sum()), settings.vector_size
    if json:
        values = {"output": str(output), "vectors": num_vectors, "vector_size": size}
        return json_module.dumps(values) + "\n"
    vocabulary = shards.load_tokenizer().vocabulary
    frequent = (shards.token_counts * has_vector).argsort(kind="stable")[::-1]
    words = (vocabulary[number] for number in frequent.tolist() if has_vector[number])
    telling = [word for word in words if word.isalpha() and len(word) >= TELLING_LETTERS]
    example = telling[len(telling) // 2] if telling else "WORD"  # neither frequent nor rare
    return (
        f"{num_vectors:,} of the {len(vocabulary):,} entries of the vocabulary have a vector of"
        f" {size:,} features; the others occur fewer than {settings.min_count:,} times.\n"
        f"{describe_next('nearest', example, '--model', output)}\n"
    )


def skip_thought(
    *texts: Words,
    data: Path | None = None,
    output: Path | None = None,
    file: Path | None = None,
    top_k: Annotated[int, Parameter(validator=Number(gte=1))] = 5,
    settings: SkipThoughtSettings = SkipThoughtSettings(),
    json: bool = False,
) -> None:
    """Train skip-thought sentence vectors, or find the sentences nearest to a given one.

    With --data and --output the network is trained: it reads a sentence and predicts the sentences
    before and after it. The same command resumes after Ctrl-C. Without them, the first argument is
    the folder of such a run, and the lines of --file are compared with each text by cosine. A line
    that is the text itself is left out, and a line that occurs twice counts once.

    **Examples**

        bertkit study skip-thought --data shards/ --minutes 10 --output skip-thought/

        bertkit study skip-thought skip-thought/ "She opened the door." --file sentences.txt

    Args:
        texts: A run, and sentences.
        data: Folder that `bertkit prepare` wrote, to train on.
        output: Folder of the run to train.
        file: File with one sentence per line, among which the nearest are found.
        top_k: Number of sentences for each text.
        json: Print one JSON object per text, or of the training.
    """
    require_torch("`bertkit study skip-thought`")
    if data is not None and output is not None and not texts and file is None:
        train(data, output, settings, json=json)
        return
    if data is not None or output is not None or settings != SkipThoughtSettings():
        raise SettingsError("training needs --data and --output, and takes no texts and no --file")
    if not texts or file is None:
        raise SettingsError(
            "name the folder of a run, texts, and --file with the sentences to compare them with;"
            " or --data and --output to train"
        )
    check_standard_output()
    compare(Path(texts[0]), texts[1:], file, top_k, json=json)


def train(data: Path, output: Path, settings: SkipThoughtSettings, *, json: bool) -> None:
    """Train or resume a skip-thought network, and print its result."""
    with stop_at_once(lambda: STOPPED):
        from bertkit_studies.baselines.skip_thought import train_skip_thought

    result = train_skip_thought(data, output, settings)
    words = ("She opened the door.", "--file", "FILE")
    trial = f"{describe_next('study', 'skip-thought', output, *words)} (one sentence per line)"
    sys.stdout.write(describe_training(result, trial, json=json))


def compare(run: Path, texts: Sequence[str], file: Path, top_k: int, *, json: bool) -> None:
    """Print the lines of a file that are nearest to each text."""
    queries = list_texts(texts, None)
    lines = list(dict.fromkeys(list_texts((), str(file))))
    from bertkit.checkpoints.file_names import CONFIG_FILE, SAFETENSORS_FILE
    from bertkit.checkpoints.run_folder import find_checkpoint
    from bertkit.inference.embeddings.similarity import compare_all
    from bertkit.tokenization.tokenizer import Tokenizer
    from bertkit_studies.baselines.text_vectors import encode_texts
    from bertkit_studies.recurrent.skip_thought import SkipThought

    folder = find_checkpoint(run, reading=(CONFIG_FILE, SAFETENSORS_FILE))
    net, tokenizer = SkipThought.from_pretrained(folder), Tokenizer.load(folder)
    vectors = encode_texts(net, tokenizer, [*queries, *lines], MAX_LENGTH)
    num_queries = len(queries)
    scores = compare_all("cosine", vectors[:num_queries], vectors[num_queries:])
    for query, row in zip(queries, scores, strict=True):
        order = [number for number in (-row).argsort(kind="stable") if lines[number] != query]
        found = [(lines[number], float(row[number])) for number in order[:top_k]]
        sys.stdout.write(describe_sentences(query, found, json=json))


def describe_sentences(text: str, found: Sequence[tuple[str, float]], *, json: bool) -> str:
    """Format the sentences nearest to a text as text or JSON."""
    if json:
        sentences = [{"sentence": line, "similarity": score} for line, score in found]
        return json_module.dumps({"text": text, "sentences": sentences}, ensure_ascii=False) + "\n"
    shown = [f"  {score:6.3f} {printable(line)}" for line, score in found]
    return "".join(f"{line}\n" for line in (printable(text), *shown))
