"""What a server does under five times the load that it can take, and under faults for long.

    python benchmarks/bench_overload.py --seconds 120
    python benchmarks/bench_overload.py --seconds 20 --soak-minutes 30

The server is `bertkit serve` in a process of its own on one core, with the models that come with
bertkit; the clients are on the others. First 16 clients ask as fast as they are answered, which is
what the server can do; then 900 send five times as many requests a second, without regard to
refusals. Only 200, 429 and 503 may come. Each answer is compared with what the
pipeline gives alone in this process: numbers within 1e-6 of the largest of the answer, if that is
over 1, and all else equal. The memory of the server (VmRSS) may grow by 10 % and 64 MB; in a soak,
from its first quarter to its last. After the load one client asks every 20 ms; the server is back
from the second on in which half of the answers take less than three times the usual time and 20 ms,
which must be so after 5 s.

The soak mixes routes for minutes; beside 12 patient clients others leave before the answer, or send
half a body, and all models are loaded again each minute. A patient client whose connection breaks
counts as lost. In the end the server gets SIGTERM, and must exit with 0.
"""

import asyncio
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bertkit.checkpoints.bundled import find_bundled
from bertkit.inference.embeddings.embedder import Embedder
from bertkit.inference.fill_mask import FillMask
from bertkit.serving.endpoint import write_json
from program import PASSIVE, build_parser, write_figures

KEY = "of-the-benchmark"
FACTOR = 5
FEW, MANY = 16, 900  # clients
TOLERANCE = 1e-6
MAX_GROWTH, MAX_GROWTH_BYTES = 0.1, 64 << 20
# Before that, memory isn't level: engines compile what they need, and two models at once need more.
LEVEL_MINUTES = 2.0
MAX_RECOVERY_SECONDS = 5.0
PATIENT, FLEETING = 12, 4
REFUSALS = {200, 429, 503}
VECTORS, WORDS = "/v1/models/all-MiniLM-L6-v2", "/v1/models/all-MiniLM-L6-v2-words"
TEXT = "it rained all day in the old town and the river rose until the bridge was under water"


@dataclass(frozen=True)
class Question:
    """A request, and what answers it."""

    path: str
    body: bytes
    expected: Any

    @property
    def content(self) -> bytes:
        head = f"POST {self.path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        return f"{head}Content-Length: {len(self.body)}\r\n\r\n".encode() + self.body


@dataclass
class Tally:
    """What came of requests."""

    statuses: Counter[int] = field(default_factory=Counter)
    latencies: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    num_lost: int = 0

    def note(self, question: Question, status: int, content: bytes, seconds: float) -> None:
        self.statuses[status] += 1
        if status == 200:
            self.latencies.append(seconds)
            if not is_same(pick(json.loads(content)), question.expected):
                self.wrong.append(question.path)

    def as_row(self) -> dict[str, Any]:
        quantiles = np.quantile(self.latencies, (0.5, 0.95, 0.99)) if self.latencies else [0, 0, 0]
        return {
            "statuses": {str(status): count for status, count in sorted(self.statuses.items())},
            "milliseconds": dict(
                zip(("p50", "p95", "p99"), 1e3 * np.array(quantiles), strict=True)
            ),
            "wrong": len(self.wrong),
            "lost": self.num_lost,
        }


def pick(answer: Any) -> Any:
    """The results of an answer, whatever stands beside them."""
    return answer.get("results", answer) if isinstance(answer, dict) else answer


def list_values(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from list_values(one)
    else:
        yield value


def is_same(found: Any, expected: Any) -> bool:
    pairs = list(zip(list_values(found), list_values(expected), strict=True))
    numbers = np.array([pair for pair in pairs if isinstance(pair[1], float)]).reshape(-1, 2)
    scale = max(1.0, np.abs(numbers).max(initial=0.0))
    is_near = np.abs(numbers[:, 0] - numbers[:, 1]).max(initial=0.0) <= TOLERANCE * scale
    return bool(is_near) and all(a == b for a, b in pairs if not isinstance(b, float))


def ask_alone() -> list[Question]:
    """Requests of several routes and lengths, with what the pipelines give for each alone."""
    embed = Embedder.load(find_bundled("vectors"), device="cpu", precision="fp32")
    fill = FillMask.load(find_bundled("words"), device="cpu", precision="fp32")
    questions = []
    for number in range(24):
        text = " ".join((TEXT.split() * 6)[number : number + 4 + 4 * (number % 12)])
        expected = json.loads(write_json([embed(text)]))
        questions.append(Question(f"{VECTORS}/embed", write_json({"inputs": text}), expected))
        if number % 4 == 0:
            text = f"{text} [MASK] ."
            expected = json.loads(write_json(fill(text)))
            path = f"{WORDS}/fill-mask"
            questions.append(Question(path, write_json({"inputs": text}), expected))
    return questions


@dataclass(frozen=True)
class Server:
    """The server's process."""

    process: "subprocess.Popen[bytes]"
    port: int

    @property
    def rss_bytes(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return 1024 * int(re.findall(r"VmRSS:\s*(\d+)", status)[0])


@contextmanager
def running() -> Iterator[Server]:
    """A server, which is killed if it is still there in the end."""
    words = ["serve", "--port", "0", "--device", "cpu", "--precision", "fp32"]
    environment = {**PASSIVE, **os.environ, "BERTKIT_ADMIN_KEY": KEY, "OMP_NUM_THREADS": "1"}
    own, *others = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "bertkit", *words], stderr=log, env=environment
        )
        os.sched_setaffinity(process.pid, {own})
        os.sched_setaffinity(0, others or {own})
        try:
            yield Server(process, read_port(process, log))
        finally:
            process.kill()
            process.wait()


def read_port(process: "subprocess.Popen[bytes]", log: Any) -> int:
    while process.poll() is None:
        said = os.pread(log.fileno(), 1 << 16, 0).decode()
        if found := re.search(r"http://127.0.0.1:(\d+)", said):
            return int(found[1])
        time.sleep(0.05)
    raise SystemExit(f"the server ended: {os.pread(log.fileno(), 1 << 16, 0).decode()}")


class Client:
    """One connection, which is made again when the server closed it."""

    def __init__(self, server: Server) -> None:
        self._port = server.port
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def send(self, content: bytes) -> None:
        if self._streams is None:
            self._streams = await asyncio.open_connection("127.0.0.1", self._port)
        self._streams[1].write(content)
        await self._streams[1].drain()

    async def ask(self, question: Question, tally: Tally) -> None:
        """Ask and note the answer; a connection that breaks is counted."""
        begun = time.monotonic()
        try:
            await self.send(question.content)
            status, content = await self.read()
        except (OSError, asyncio.IncompleteReadError):
            tally.num_lost += 1
            self.close()
        else:
            tally.note(question, status, content, time.monotonic() - begun)

    async def read(self) -> tuple[int, bytes]:
        """Read the status and the body of an answer."""
        assert self._streams is not None
        head = (await self._streams[0].readuntil(b"\r\n\r\n")).lower()
        size = int(re.findall(rb"content-length: (\d+)", head)[0])
        content = await self._streams[0].readexactly(size)
        if b"connection: close" in head:
            self.close()
        return int(head.split(b" ", 2)[1]), content

    def close(self) -> None:
        if self._streams is not None:
            self._streams[1].close()
        self._streams = None


async def drive(
    server: Server, questions: Sequence[Question], num_clients: int, seconds: float, rate: float = 0
) -> Tally:
    """Ask for some seconds, `rate` times a second in all, or as fast as answers come."""
    tally, begun = Tally(), time.monotonic()

    async def ask(number: int) -> None:
        choose, client, sent = random.Random(number), Client(server), 0
        while time.monotonic() < begun + seconds:
            if rate:
                due = begun + (sent + number / num_clients) * num_clients / rate
                await asyncio.sleep(max(0.0, due - time.monotonic()))
            await client.ask(choose.choice(questions), tally)
            sent += 1
        client.close()

    await asyncio.gather(*map(ask, range(num_clients)))
    return tally


async def recover(server: Server, questions: Sequence[Question], usual: float) -> float:
    """Return after how many seconds answers come as fast as usual again."""
    client, begun, slow = Client(server), time.monotonic(), 0.0
    while (now := time.monotonic() - begun) < MAX_RECOVERY_SECONDS + 1:
        tally = Tally()
        while time.monotonic() - begun < now + 1:
            await client.ask(random.choice(questions), tally)
            await asyncio.sleep(0.02)
        if not tally.latencies or statistics.median(tally.latencies) > 3 * usual + 0.02:
            slow = time.monotonic() - begun
    client.close()
    return slow


async def overload(server: Server, questions: Sequence[Question], seconds: float) -> dict[str, Any]:
    """Measure what the server can do, and send five times that."""
    calm = await drive(server, questions, 1, max(1.0, seconds / 10))
    able = await drive(server, questions, FEW, max(1.0, seconds / 10))
    rate = FACTOR * able.statuses[200] / max(1.0, seconds / 10)
    before, begun = server.rss_bytes, time.monotonic()
    tally = await drive(server, questions, MANY, seconds, rate)
    took = time.monotonic() - begun
    recovery = await recover(server, questions, statistics.median(calm.latencies))
    return {
        "seconds": seconds,
        "usual": calm.as_row(),
        "able_per_second": rate / FACTOR,
        "sent_per_second": sum(tally.statuses.values()) / took,
        "answered_per_second": tally.statuses[200] / took,
        **tally.as_row(),
        "recovery_seconds": recovery,
        "rss_megabytes": {"before": before / 1e6, "after": server.rss_bytes / 1e6},
    }


async def leave_early(server: Server, questions: Sequence[Question], number: int) -> None:
    """Ask and don't wait for the answer, or send half of a request."""
    choose, client = random.Random(number), Client(server)
    with suppress(OSError):
        content = choose.choice(questions).content
        await client.send(content if number % 2 else content[: -choose.randrange(1, 40)])
        await asyncio.sleep(choose.random() * (0.02 if number % 2 else 1.0))
    client.close()


async def soak(server: Server, questions: Sequence[Question], minutes: float) -> dict[str, Any]:
    """Mix requests, faults and reloads."""
    stop = time.monotonic() + 60 * minutes
    sizes: list[float] = []
    reloads = Tally()
    done = Counter[str]()

    async def repeat(act: Callable[[int], Awaitable[object]], pause: float, name: str) -> None:
        while time.monotonic() < stop:
            await act(done[name])
            done[name] += 1
            await asyncio.sleep(min(pause, max(0.0, stop - time.monotonic())))

    async def reload(_: int) -> None:
        head = "POST /v1/reload HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n"
        client = Client(server)
        await client.send(f"{head}Authorization: Bearer {KEY}\r\n\r\n".encode())
        status, _body = await client.read()
        reloads.statuses[status] += 1
        client.close()

    async def measure(_: int) -> None:
        sizes.append(server.rss_bytes / 1e6)

    asking = asyncio.create_task(drive(server, questions, PATIENT, 60 * minutes, rate=PATIENT * 8))
    await asyncio.gather(
        repeat(reload, min(60.0, 20 * minutes), "reloads"),
        repeat(measure, minutes, "measures"),
        *(
            repeat(lambda number: leave_early(server, questions, number), 0.05, "left early")
            for _ in range(FLEETING)
        ),
    )
    patient = await asking
    quarter = max(1, len(sizes) // 4)
    return {
        "minutes": minutes,
        **patient.as_row(),
        "left_early": done["left early"],
        "reloads": {str(status): count for status, count in reloads.statuses.items()},
        "rss_megabytes": {
            "first_quarter": statistics.median(sizes[:quarter]),
            "last_quarter": statistics.median(sizes[-quarter:]),
            "most": max(sizes),
        },
    }


def find_problems(name: str, row: dict[str, Any], before: str, after: str) -> list[str]:
    """What must not be."""
    sizes, minutes = row["rss_megabytes"], row.get("minutes") or row["seconds"] / 60
    most = sizes[before] * (1 + MAX_GROWTH) + MAX_GROWTH_BYTES / 1e6
    found = {
        "another status": {int(status) for status in row["statuses"]} <= REFUSALS,
        "a wrong answer": not row["wrong"],
        "a lost request": not row["lost"],
        "memory grows": sizes[after] <= most or minutes < LEVEL_MINUTES,
        "it recovers slowly": row.get("recovery_seconds", 0.0) <= MAX_RECOVERY_SECONDS,
        "a reload failed": set(row.get("reloads", {})) <= {"200"},
    }
    return [f"{name}: {problem}" for problem, is_well in found.items() if not is_well]


def main() -> None:
    parser = build_parser(__doc__, "overload.json", data=None)
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--soak-minutes", type=float, default=0.0)
    arguments = parser.parse_args()
    questions, problems = ask_alone(), []
    content: dict[str, Any] = {}
    with running() as server:
        if arguments.seconds:
            row = asyncio.run(overload(server, questions, arguments.seconds))
            content["overload"] = row
            problems += find_problems("overload", row, "before", "after")
            print(json.dumps(row, indent=1), flush=True)
        if arguments.soak_minutes:
            row = asyncio.run(soak(server, questions, arguments.soak_minutes))
            content["soak"] = row
            problems += find_problems("soak", row, "first_quarter", "last_quarter")
            print(json.dumps(row, indent=1), flush=True)
        server.process.send_signal(signal.SIGTERM)
        content["exit_code"] = server.process.wait(60)
    write_figures(arguments.output, **content)
    if content["exit_code"] or problems:
        raise SystemExit("; ".join([*problems, f"exit code {content['exit_code']}"]))


if __name__ == "__main__":
    main()
