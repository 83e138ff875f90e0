"""The command that measures a server: benchmark serve."""

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter, validators

from bertkit.base.output import check_standard_output, open_output
from bertkit.cli.output import print_result


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
        clients: Numbers of clients at once, which are measured one after another.
        seconds: How long each number of them asks.
        key: Key of the server.
        output: A page with the figures.
        json: Print the figures as JSON.
    """
    check_standard_output()
    from bertkit.jobs.load_test import Target, draw, drive_each, make_bodies, tabulate

    target = Target.parse(url, key)
    bodies = make_bodies(target.path, body, words)
    page = nullcontext() if output is None else open_output(output, "writing a page into")
    with page as place:
        results = drive_each(target, bodies, clients, seconds)
        if place is not None:
            draw(url, results, place)
    print_result(results, tabulate, json=json, facts=[one.as_row() for one in results])
