"""One side of bench_serve.py: a server of all-MiniLM-L6-v2, or its engine alone, on one core.

A server says its port when it is ready, and ends with standard input. The engine says how many
texts of a set it embeds a second, whenever it is asked.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.update(OMP_NUM_THREADS="1", OMP_WAIT_POLICY="PASSIVE")  # read when torch is loaded

from program import answer, obey

CORE = 0
INFINITY = "BERTKIT_INFINITY"  # where infinity_emb is, which needs other versions of packages


def serve_bertkit(folder: Path, precision: str) -> None:
    """`bertkit serve`, but for the signals, which end with standard input here."""
    from bertkit.serving.server import ModelServer, run_server
    from bertkit.serving.settings import ServeSettings

    settings: Any = {"precision": precision, "port": 0, "max_wait": 3600, "timeout": 3600}
    server = ModelServer({"minilm": str(folder)}, ServeSettings(**settings))
    threading.Thread(target=wait_for_end, args=(server.stop,), daemon=True).start()
    run_server(server, server.run(lambda _: answer({"port": server.port})))


def serve_by_hand(folder: Path, precision: str) -> None:
    """What people write: FastAPI around `SentenceTransformer.encode`."""
    import uvicorn
    from fastapi import FastAPI
    from pydantic import BaseModel

    encode = load_sentence_transformers(folder, precision)

    class Texts(BaseModel):
        inputs: list[str]

    app = FastAPI()

    @app.post("/embed")
    def embed(body: Texts) -> list[list[float]]:
        vectors: list[list[float]] = encode(body.inputs).tolist()
        return vectors

    place = bind()
    config = uvicorn.Config(app, log_level="warning")
    threading.Thread(target=wait_for_end, args=(end_group,), daemon=True).start()
    answer({"port": place.getsockname()[1]})
    uvicorn.Server(config).run(sockets=[place])


def serve_by_litserve(folder: Path, precision: str) -> None:
    """LitServe, which gathers requests of a few milliseconds into a batch."""
    from litserve_side import build_server

    place = bind()
    port = place.getsockname()[1]
    place.close()
    server = build_server(folder, precision)
    threading.Thread(target=wait_for_end, args=(end_group,), daemon=True).start()
    threading.Thread(target=tell_when_open, args=(port,), daemon=True).start()
    server.run(host="127.0.0.1", port=port, generate_client_file=False, log_level="warning")


def serve_by_infinity(folder: Path, precision: str) -> None:
    """infinity-emb, of an environment of its own; its dynamic batches are of up to 64 texts."""
    place = bind()
    port = place.getsockname()[1]
    place.close()
    options = {
        "model-id": str(folder),
        "served-model-name": "minilm",
        "engine": "torch",
        "device": "cpu",
        "dtype": "bfloat16" if precision == "bf16" else "float32",
        "batch-size": "64",
        "host": "127.0.0.1",
        "port": str(port),
        "log-level": "warning",
    }
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1"}
    command = [os.environ[INFINITY], "v2", "--no-bettertransformer", *words]
    threading.Thread(target=wait_for_end, args=(end_group,), daemon=True).start()
    threading.Thread(target=tell_when_open, args=(port,), daemon=True).start()
    subprocess.run(
        command, stdin=subprocess.DEVNULL, stdout=sys.stderr, env=environment, check=True
    )


def run_engine(folder: Path, precision: str) -> None:
    """Bertkit's engine without a server: all texts of a file, and one at a time."""
    from bertkit import Embedder

    embed = Embedder.load(folder, precision=precision)
    embed(["a text", "another text"])

    def measure(order: str) -> dict[str, Any]:
        asked = json.loads(order)
        texts, deadline, count = asked["texts"], time.perf_counter() + asked["seconds"], 0
        begun = time.perf_counter()
        while time.perf_counter() < deadline:
            embed(texts)
            count += len(texts)
        rate = count / (time.perf_counter() - begun)
        singles = []
        for text in texts[: asked["singles"]]:
            started = time.perf_counter()
            embed(text)
            singles.append(time.perf_counter() - started)
        return {"requests_per_second": rate, "p50_ms": 1000 * sorted(singles)[len(singles) // 2]}

    answer({})
    obey(measure)


def load_sentence_transformers(folder: Path, precision: str) -> Callable[[list[str]], Any]:
    import torch
    from sentence_transformers import SentenceTransformer

    dtype = torch.bfloat16 if precision == "bf16" else torch.float32
    model = SentenceTransformer(str(folder), device="cpu", model_kwargs={"dtype": dtype})
    return lambda texts: model.encode(texts, show_progress_bar=False)


def wait_for_end(end: Callable[[], object]) -> None:
    """Call something when standard input ends; a child that is forked finds no lock held on it."""
    while os.read(0, 1024):
        pass
    end()


def end_group() -> None:
    """End this process and those that it has started."""
    os.killpg(0, signal.SIGKILL)


def bind() -> socket.socket:
    place = socket.socket()
    place.bind(("127.0.0.1", 0))
    return place


def tell_when_open(port: int) -> None:
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.1)
        else:
            answer({"port": port})
            return


SIDES: dict[str, Callable[[Path, str], None]] = {
    "bertkit": serve_bertkit,
    "fastapi": serve_by_hand,
    "litserve": serve_by_litserve,
    "infinity": serve_by_infinity,
    "engine": run_engine,
}


if __name__ == "__main__":
    os.setpgid(0, 0)
    os.sched_setaffinity(0, {CORE})
    SIDES[sys.argv[1]](Path(sys.argv[2]), sys.argv[3])
