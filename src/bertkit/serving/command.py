"""The commands `bertkit serve` and `bertkit benchmark serve`."""

import sys
from contextlib import nullcontext
from json import dumps
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, validators

from bertkit.base.errors import MissingExtraError
from bertkit.base.output import check_standard_output, open_output
from bertkit.base.settings import replace_surrogates
from bertkit.serving.settings import ServeSettings


def serve(*models: str, settings: ServeSettings = ServeSettings()) -> None:
    """Serve models over HTTP: vectors, classes, entities, answers, blanks, translations.

    Routes are those of OpenAI (/v1/embeddings), Cohere and Jina (/v1/rerank) and
    text-embeddings-inference (/embed, /predict, /rerank, …), so that their clients work; further
    tasks are at /v1/models/NAME/TASK.

    SIGTERM and Ctrl-C end it when the running requests are answered; SIGUSR1 loads the models
    again.

    **Examples**

        bertkit serve

        bertkit serve sentiment/ encoder/ --port 8080

        bertkit serve small=encoder/ large=BAAI/bge-large-en-v1.5 --keys keys.txt --host 0.0.0.0

    Args:
        models: Model folders, runs, or ids of models of the Hub, by the name of their folder or as
            NAME=PATH; by default the model that comes with bertkit.
    """
    try:
        from bertkit.serving.workers import serve as run
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("bertkit"):
            raise
        raise MissingExtraError(
            f"the server isn't installed ({error.name} is missing); pip install 'bertkit[serve]'"
        ) from None
    run([replace_surrogates(one) for one in models], settings)


def benchmark_serve(
    url: str,
    *,
    body: Path | None = None,
    words: Annotated[int, Parameter(validator=validators.Number(gte=1))] = 12,
    clients: Annotated[tuple[int, ...], Parameter(consume_multiple=True, negative=())] = (1, 8, 64),
    seconds: float = 10.0,
    key: str = "",
    output: Path | None = None,
    json: bool = False,
) -> None:
    """Measure how many requests a server answers, and how fast.

    Clients send a request each, wait for the answer and send the next one, for some seconds at each
    number of clients. Prints requests a second, how long half, 95 % and 99 % of them took at most,
    and what was refused; --output draws latency over throughput.

    **Examples**

        bertkit benchmark serve http://localhost:8080/v1/embeddings

        bertkit benchmark serve http://localhost:8080/embed --words 100 --output load.html

        bertkit benchmark serve http://localhost:8080/predict --body request.json --clients 16

    Args:
        url: The address of a route that takes a POST.
        body: File with the JSON of each request; by default texts.
        words: Words of each text, without a body.
        clients: How many are there at once.
        seconds: How long each number of them asks.
        key: Key of the server.
        output: A page with the figures.
        json: Print the figures as one JSON object.
    """
    check_standard_output()
    from bertkit.serving.load import Target, draw, drive_each, make_bodies, tabulate

    target = Target.parse(url, key)
    bodies = make_bodies(target.path, body, words)
    page = nullcontext() if output is None else open_output(output, "writing a page into")
    with page as place:
        results = drive_each(target, bodies, clients, seconds)
        if place is not None:
            draw(url, results, place)
    rows = [result.as_row() for result in results]
    sys.stdout.write(f"{dumps(rows, indent=2)}\n" if json else tabulate(results))
