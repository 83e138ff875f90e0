"""A server of vectors beside those that people write, and beside its engine alone.

    python benchmarks/bench_serve.py --data data/ --rounds 3
    BERTKIT_INFINITY=bin/infinity_emb python benchmarks/bench_serve.py --sides bertkit infinity
    python benchmarks/bench_serve.py --data data/ --url http://localhost:8080/embed

all-MiniLM-L6-v2 on a CPU of two cores: each server on one of them, with one thread for the model,
and the clients on the other. Clients send a request with one text, wait for the answer, and send
the next. Texts are real ones of 16 and of 128 tokens, and a mix of both. The peers: FastAPI around
`SentenceTransformer.encode`, as people write it, and LitServe with batches of up to 64; the engine
alone embeds the same texts in one call, and for the latency one by one. All sides are there at
once and take turns; what a server gives is compared with the engine's vectors first. In float32;
`--precision bf16` for both. infinity-emb needs other versions of packages, so that it is taken from
another environment; text-embeddings-inference needs a build of its own. With `--url`, a server that
is running already is measured alone, with the same texts; `--key` is sent with each request.
"""

import asyncio
import http.client
import json
import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import cycle, zip_longest
from pathlib import Path
from typing import Any

import aiohttp
import numpy as np

from bench_query import cut_queries
from bertkit import Embedder
from bertkit.tokenization.tokenizer import Tokenizer
from minilm import find_minilm
from program import build_parser, list_versions, write_figures
from sides import Sides
from turns import begin_table, format_row, order_turn, spread

CORE = 1
NUM_TEXTS = 200
LENGTHS = {"16": (16,), "128": (128,), "mix": (16, 128)}
QUANTILES = (0.5, 0.95, 0.99)
MAX_DIFFERENCE = {"fp32": 1e-4, "bf16": 2e-2}
ENGINE = "engine"
SERVERS = ("bertkit", "fastapi", "litserve", "infinity")
USUAL_SERVERS = SERVERS[:3]


def main() -> None:
    parser = build_parser(__doc__, "serve.json", rounds=3)
    parser.add_argument("--sides", nargs="+", choices=SERVERS, default=USUAL_SERVERS)
    parser.add_argument("--sets", nargs="+", choices=LENGTHS, default=tuple(LENGTHS))
    parser.add_argument("--clients", nargs="+", type=int, default=(1, 8, 64))
    parser.add_argument("--seconds", type=float, default=8.0, help="of each measurement")
    parser.add_argument("--texts", type=int, default=NUM_TEXTS, help="of each length")
    parser.add_argument("--url", help="of a route of a server that is running, to measure it alone")
    parser.add_argument("--key", default="", help="of that server")
    parser.add_argument("--precision", choices=tuple(MAX_DIFFERENCE), default="fp32")
    arguments = parser.parse_args()
    folder = find_minilm()
    tokenizer = Tokenizer.load(folder)
    texts = {
        name: read_texts(arguments.data, tokenizer, name, arguments.texts)
        for name in arguments.sets
    }
    if arguments.url:
        for name in arguments.sets:
            print(f"{name} tokens")
            measure_url(arguments.url, texts[name], arguments.clients, arguments)
        return
    os.sched_setaffinity(0, {min(CORE, (os.cpu_count() or 1) - 1)})
    cases = [(name, clients) for name in arguments.sets for clients in arguments.clients]
    rows: dict[tuple[str, int], dict[str, list[dict[str, Any]]]] = {
        case: {name: [] for name in (*arguments.sides, ENGINE)} for case in cases
    }
    names = [*arguments.sides, ENGINE]
    with Sides("serve_side.py", names, folder, arguments.precision, one_by_one=True) as sides:
        ports = {name: sides.told[name]["port"] for name in arguments.sides}
        check(folder, ports, next(iter(texts.values()))[:20], arguments.precision)
        for number in range(arguments.rounds):
            for (name, clients), found in rows.items():
                for side in order_turn(names, number):
                    order = texts[name], clients, arguments.seconds
                    found[side].append(measure(sides, side, ports, *order))
                    rate = found[side][-1]["requests_per_second"]
                    print(f"{name} tokens, {clients} clients, {side}: {rate:,.1f}/s", flush=True)
    results = [summarize_case(*case, found) for case, found in rows.items()]
    print(begin_table("tokens", "clients", "side", "requests/s", "p50 ms", "p95 ms", "p99 ms"))
    for result in results:
        print("\n".join(describe(result)))
    machine = list_versions("fastapi", "litserve", "sentence-transformers", "uvicorn")
    write_figures(arguments.output, machine, precision=arguments.precision, results=results)


def read_texts(data: Path, tokenizer: Tokenizer, name: str, count: int) -> list[str]:
    """The texts of a set; those of several lengths take turns."""
    parts = [cut_queries(data, tokenizer, length, count) for length in LENGTHS[name]]
    return [text for group in zip_longest(*parts) for text in group if text is not None]


def check(folder: Path, ports: dict[str, int], texts: Sequence[str], precision: str) -> None:
    """End unless each server gives the vectors of the engine."""
    expected = Embedder.load(folder, precision="fp32")(list(texts))
    for side, port in ports.items():
        found = np.array([ask(side, port, text) for text in texts])
        difference = float(np.abs(found - expected).max())
        if not difference <= MAX_DIFFERENCE[precision]:
            raise SystemExit(f"{side} gives other vectors: {difference:.2g} apart")


def ask(side: str, port: int, text: str) -> Any:
    connection = http.client.HTTPConnection("127.0.0.1", port, 600)
    path, body = write_request(side, text)
    connection.request("POST", path, body, {"Content-Type": "application/json"})
    content = json.loads(connection.getresponse().read())
    connection.close()
    if isinstance(content, list):
        return content[0]
    return content["data"][0]["embedding"] if "data" in content else content["embedding"]


def write_request(side: str, text: str) -> tuple[str, bytes]:
    """The path and the body of a request to a side."""
    if side == "infinity":
        return "/embeddings", json.dumps({"model": "minilm", "input": [text]}).encode()
    return "/embed", json.dumps({"inputs": [text]}).encode()


def measure(
    sides: Sides,
    side: str,
    ports: dict[str, int],
    texts: Sequence[str],
    clients: int,
    seconds: float,
) -> dict[str, Any]:
    """The requests a second and the latencies of a side."""
    if side == ENGINE:
        order = {"texts": texts, "seconds": seconds, "singles": 50}
        return sides.ask(side, json.dumps(order))
    requests = [write_request(side, text) for text in texts]
    url, bodies = f"http://127.0.0.1:{ports[side]}{requests[0][0]}", [one[1] for one in requests]
    row = asyncio.run(drive(url, bodies, clients, seconds))
    if row.pop("refused"):
        raise SystemExit(f"{side} refused requests")
    return row


async def drive(
    url: str, bodies: Sequence[bytes], num_clients: int, seconds: float, key: str = ""
) -> dict[str, Any]:
    """Let clients send requests for some seconds, each when the one before is answered.

    Args:
        url: of a route that takes a POST.
        bodies: of the requests, which are sent in turn.
        num_clients: at once, each with a connection of its own.
        seconds: after which nothing new is sent.
        key: of the server, or empty.
    """
    headers = {"Content-Type": "application/json"}
    headers |= {"Authorization": f"Bearer {key}"} if key else {}
    statuses, latencies, turns = Counter[int](), list[float](), cycle(bodies)
    begun = time.monotonic()

    async def ask(session: aiohttp.ClientSession) -> None:
        while (sent := time.monotonic()) < begun + seconds:
            async with session.post(url, data=next(turns)) as response:
                await response.read()
                statuses[response.status] += 1
            if response.status == http.client.OK:
                latencies.append(time.monotonic() - sent)

    connector = aiohttp.TCPConnector(limit=num_clients)
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        await asyncio.gather(*(ask(session) for _ in range(num_clients)))
    took = time.monotonic() - begun
    quantiles = np.quantile(latencies, QUANTILES) if latencies else [float("nan")] * len(QUANTILES)
    return {
        "clients": num_clients,
        "requests_per_second": len(latencies) / took,
        **{
            f"p{100 * q:.0f}_ms": 1000 * float(v) for q, v in zip(QUANTILES, quantiles, strict=True)
        },
        "refused": {str(one): count for one, count in statuses.items() if one != http.client.OK},
    }


def measure_url(url: str, texts: Sequence[str], clients: Sequence[int], arguments: Any) -> None:
    """Measure a server that is running, and print the figures of each number of clients."""
    name = "input" if url.partition("?")[0].endswith("embeddings") else "inputs"
    bodies = [json.dumps({name: text}).encode() for text in texts]
    for count in clients:
        row = asyncio.run(drive(url, bodies, count, arguments.seconds, arguments.key))
        print(json.dumps(row), flush=True)


def summarize_case(
    name: str, clients: int, found: dict[str, list[dict[str, Any]]]
) -> dict[str, Any]:
    sides = {
        side: {key: spread([row[key] for row in rows]) for key in rows[0] if key != "clients"}
        for side, rows in found.items()
    }
    engine, ours = found[ENGINE], found["bertkit"]
    shares = [
        one["requests_per_second"] / other["requests_per_second"]
        for one, other in zip(ours, engine, strict=True)
    ]
    return {"tokens": name, "clients": clients, "sides": sides, "to_engine": spread(shares)}


def describe(result: dict[str, Any]) -> Iterator[str]:
    for side, figures in result["sides"].items():
        rate = figures["requests_per_second"]
        speed = f"{rate['median']:,.1f} ({rate['low']:,.1f}–{rate['high']:,.1f})"
        quantiles = [figures.get(key) for key in ("p50_ms", "p95_ms", "p99_ms")]
        cells = ["–" if one is None else f"{one['median']:,.1f}" for one in quantiles]
        yield format_row(result["tokens"], result["clients"], side, speed, *cells)
    share = result["to_engine"]
    share = f"{share['median']:.2f} ({share['low']:.2f}–{share['high']:.2f})"
    yield format_row("", "", "bertkit as a share of the engine", share, "", "", "")


if __name__ == "__main__":
    main()
