"""`bertkit similarity`: compare texts."""

import json as json_module
from pathlib import Path
from typing import Annotated, cast

from cyclopts import Parameter

from bertkit.base.errors import InputError
from bertkit.base.wording import pluralize
from bertkit.cli.default_model import take_model
from bertkit.cli.output import check_standard_output
from bertkit.cli.texts import Words, gather_texts
from bertkit.embeddings.settings import EmbedderSettings
from bertkit.embeddings.similarity_names import Similarity

MAX_TEXTS = 1000


def similarity(
    *texts: Words,
    model: str | None = None,
    file: Path | None = None,
    similarity: Similarity | None = None,
    settings: Annotated[EmbedderSettings, Parameter(name="*")] = EmbedderSettings(),  # noqa: B008
    device: str = "auto",
    revision: str | None = None,
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
        model: A run of `bertkit pretrain`, a model folder, or the id of a model of the Hub; by
            default the first argument, or else the model that comes with bertkit.
        file: File with one text per line.
        similarity: Similarity measure; by default that of the model's folder, else cosine.
            Distances are negated: higher is always more similar.
        settings: The settings of the command.
        device: auto, cpu, cuda or cuda:N.
        revision: Branch, tag or commit of a model of the Hub.
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
    from bertkit.embeddings.embedder import Embedder
    from bertkit.embeddings.similarity import compare_all

    embedder = Embedder.load(model, settings, device=device, revision=revision)
    vectors = embedder.encode(given)
    chosen = similarity or cast("Similarity", embedder.similarity)
    scores = compare_all(chosen, vectors, vectors).tolist()
    if json:
        found = {"similarity": chosen, "texts": given, "scores": scores}
        print(json_module.dumps(found, ensure_ascii=False))
    elif len(given) == 2:
        print(f"{scores[0][1]:.4f}")
    else:
        for row in scores:
            print(" ".join(f"{score:8.4f}" for score in row))
