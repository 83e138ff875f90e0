"""Feeds a target with mutated files, in a process of its own.

    python -m tests.fuzz.driver TARGET SEED FOLDER [SECONDS]

A target is a module `<target>_target.py` with `seeds()`, good examples; `NUM_INPUTS`, how many
files it gets where no SECONDS of computing are given; and `read(data, folder)`, which reads one. An
input that comes to an error other than bertkit's, that computes for too long or for which the
address space doesn't suffice is written to FOLDER and named; one that ends the process lies there
as `<target>-last`.
"""

import importlib
import math
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.waiting import MAX_SECONDS, end_when_stuck

from bertkit.base.errors import BertkitError

ADDRESS_SPACE_BYTES = 600 << 20
NUMBERS = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, (1 << 63) - 1, 1 << 63)
WORDS = (b"[", b"{", b'"', b",", b"-", b"null", b"1e999", b"\0", b"\n", b"../", b"\xff", b"\\u0000")
MAX_BYTES = 1 << 19


def mutate(seeds: list[bytes], draw: random.Random) -> bytes:
    """A seed with one to four changes."""
    data = bytearray(draw.choice(seeds))
    for _ in range(draw.randint(1, 4)):
        place, end = sorted(draw.randrange(len(data) + 1) for _ in range(2))
        end = min(end, place + draw.choice((1, 8, 64, 4096)))
        match draw.randrange(7):
            case 0 if data:
                data[place - 1] ^= 1 << draw.randrange(8)
            case 1:
                del data[draw.choice((place, end)) :]
            case 2:
                del data[place:end]
            case 3:
                data[place:place] = data[place:end] * draw.choice((1, 2, 1000))
            case 4:
                other = draw.choice(seeds)
                start = draw.randrange(len(other) + 1)
                data[place:end] = other[start : start + draw.choice((8, 64, 4096))]
            case 5:
                width = draw.choice((1, 2, 4, 8))
                number = draw.choice(NUMBERS) % (1 << 8 * width)
                data[place : place + width] = number.to_bytes(width, draw.choice(("little", "big")))
            case 6:
                data[place:place] = draw.choice(WORDS) * draw.choice((1, 1, 10_000))
        del data[MAX_BYTES:]
    return bytes(data)


def main(target: str, seed: int, folder: Path, seconds: float = math.inf) -> None:
    """Run inputs until their number or the time is reached, and say how many there were."""
    module = importlib.import_module(f"tests.fuzz.{target}_target")
    draw = random.Random(seed)
    num_failures = num_inputs = 0
    with tempfile.TemporaryDirectory() as name:
        for data in (seeds := module.seeds()):
            run_one(module.read, data, Path(name))  # loads what is lazy
        limit = address_space_bytes() + ADDRESS_SPACE_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
        end = time.process_time() + seconds
        most = module.NUM_INPUTS if seconds == math.inf else math.inf
        while num_inputs < most and time.process_time() < end:
            data = mutate(seeds, draw)
            (folder / f"{target}-last").write_bytes(data)
            num_inputs += 1
            if problem := run_one(module.read, data, Path(name)):
                num_failures += 1
                (folder / f"{target}-{seed}-{num_inputs}").write_bytes(data)
                tell(f"{target}-{seed}-{num_inputs}: {problem}")
    tell(f"{target}: {num_inputs:,} inputs from seed {seed}, {num_failures} failures")
    sys.exit(1 if num_failures else 0)


def run_one(read: Callable[[bytes, Path], None], data: bytes, folder: Path) -> str:
    """Why an input isn't taken as it should be; empty where it is."""
    start = time.process_time()
    try:
        with end_when_stuck(), suppress(BertkitError):
            read(data, folder)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a failure
        return f"{type(error).__name__}: {error!s:.300}"
    seconds = time.process_time() - start
    return f"computes for {seconds:.1f} s" if seconds > MAX_SECONDS else ""


def tell(line: str) -> None:
    """Write a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def address_space_bytes() -> int:
    """What is taken now."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]), *map(float, sys.argv[4:]))
