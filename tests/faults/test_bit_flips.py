"""Ten thousand flipped bits, one at a time: each is found before what it is in is used, and named.

`BERTKIT_NUM_FLIPS` says how many. Every file is as likely as every other, so that small ones get
many, and half of the bits are in a file's first 512 bytes.
"""

import os
import random
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.small import write_corpus
from tests.faults.children import SEED

from bertkit.base.checksummed_json import read_checksummed_json
from bertkit.base.checksums import verify_file
from bertkit.base.errors import DamagedFileError, StoppedError
from bertkit.checkpoints.run_folder import list_checkpoints, verify_checkpoint
from bertkit.data.shards import MANIFEST, PLAN, SHARDS_FOLDER, TOKEN_COUNTS, ShardSet
from bertkit.inference.fill_mask import FillMask
from bertkit.jobs.inspect import describe
from bertkit.recipes.prepare import run as prepare_module
from bertkit.recipes.prepare.plan import is_finished, make_plan
from bertkit.recipes.prepare.run import prepare
from bertkit.recipes.prepare.work_unit import UNITS_FOLDER, read_unit
from bertkit.recipes.settings import PrepareSettings
from bertkit.tokenization.folder import TOKENIZER_FILES
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.log import read_log
from bertkit.training.run import Run

NUM_FLIPS = int(os.environ.get("BERTKIT_NUM_FLIPS", "10000"))
HEADER_BYTES = 512
SETTINGS = PrepareSettings(held_out=0.1)
DESCRIBED = ("config.json", "run_state.json", "model.safetensors")
LOADED = ("config.json", "model.safetensors", *TOKENIZER_FILES)


@dataclass(frozen=True)
class Target:
    """A file, and the reading that whoever uses its content next does."""

    path: Path
    read: Callable[[], Any]


@pytest.fixture(scope="module")
def targets(workshop, undisturbed, tmp_path_factory):
    """All files that are read again, but for the empty lock and what TensorBoard writes."""
    folder = tmp_path_factory.mktemp("flips")
    shutil.copytree(undisturbed[0], folder / "run")
    shutil.copytree(workshop.folder / "tokenizer", folder / "tokenizer")
    write_corpus(folder / "large.txt", 30_000)  # a mebibyte of tokens, and more
    write_corpus(folder / "small.txt", 60)
    prepare_text = partial(prepare, tokenizer_path=folder / "tokenizer", settings=SETTINGS)
    prepare_text([str(folder / "large.txt")], output=folder / "shards")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prepare_module, "write_manifest", interrupt)
        with pytest.raises(StoppedError):
            prepare_text([str(folder / "small.txt")], output=folder / "unfinished")
    return [
        *find_in_shards(folder / "shards"),
        *find_in_unit(folder / "unfinished"),
        *find_in_run(folder / "run"),
        *find_in_tokenizer(folder / "tokenizer"),
    ]


def interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


def find_in_shards(folder: Path) -> list[Target]:
    def read_tokenizer() -> None:
        ShardSet.open(folder).load_tokenizer()

    def read_shard(name: str) -> None:
        shards = ShardSet.open(folder)
        (shard,) = (each for each in (*shards.train, *shards.held_out) if each.name == name)
        _ = shard.tokens(0, shard.num_tokens), shard.sentence_offsets, shard.document_offsets

    parts = sorted((folder / SHARDS_FOLDER).iterdir())
    assert max(path.stat().st_size for path in parts) > 1 << 20
    return [
        Target(folder / MANIFEST, partial(ShardSet.open, folder)),
        Target(folder / TOKEN_COUNTS, partial(ShardSet.open, folder)),
        Target(folder / PLAN, partial(is_finished, folder, make_plan([], SETTINGS, "another"))),
        *(Target(path, read_tokenizer) for path in sorted((folder / "tokenizer").iterdir())),
        *(Target(path, partial(read_shard, path.name.split(".")[0])) for path in parts),
    ]


def find_in_unit(folder: Path) -> list[Target]:
    read = partial(read_unit, folder, 0, verify_file)
    paths = [*(folder / UNITS_FOLDER).iterdir(), *(folder / SHARDS_FOLDER).iterdir()]
    return [Target(path, read) for path in sorted(paths)]


def find_in_run(folder: Path) -> list[Target]:
    older, newest = list_checkpoints(folder)
    num_rows = Run(folder).newest_state().num_log_rows

    def read_rows() -> None:
        assert len(list(read_log(folder / "log.jsonl", num_rows))) == num_rows > 0

    def describe_whole() -> None:
        if problems := describe(folder).problems:
            raise DamagedFileError("; ".join(problems))

    return [
        Target(folder / "settings.json", Run(folder).read_record),
        Target(folder / "log.jsonl", read_rows),
        *(Target(path, Run(folder).newest_state) for path in sorted(newest.iterdir())),
        *(Target(newest / name, describe_whole) for name in DESCRIBED),
        *(Target(newest / name, partial(FillMask.load, folder, device="cpu")) for name in LOADED),
        *(Target(path, partial(verify_checkpoint, older)) for path in sorted(older.iterdir())),
    ]


def find_in_tokenizer(folder: Path) -> list[Target]:
    facts = folder / "training.json"
    return [
        Target(facts, partial(read_checksummed_json, facts)),  # for people; no command reads it
        *(
            Target(path, partial(Tokenizer.load, folder))
            for path in sorted(folder.iterdir())
            if path != facts
        ),
    ]


def find_unseen(targets: list[Target], num_flips: int) -> list[str]:
    """Flip bits, one at a time; those that were not found, or not named with file and part."""
    choose = random.Random(SEED)
    unseen = []
    for _ in range(num_flips):
        target = choose.choice(targets)
        content = target.path.read_bytes()
        limit = choose.choice([HEADER_BYTES, len(content)])
        offset, bit = choose.randrange(min(limit, len(content))), choose.randrange(8)
        write_byte(target.path, offset, content[offset] ^ 1 << bit)
        try:
            target.read()
        except Exception as error:  # noqa: BLE001 - whatever comes instead is to be listed
            message = str(error) if isinstance(error, DamagedFileError) else repr(error)
        else:
            message = "nothing was found"
        finally:
            write_byte(target.path, offset, content[offset])
        if not is_named(message, target.path, content, offset):
            unseen.append(f"{target.path}, byte {offset:,}, bit {bit}: {message}")
    return unseen


def write_byte(path: Path, offset: int, value: int) -> None:
    with path.open("r+b") as stream:
        stream.seek(offset)
        stream.write(bytes([value]))


def is_named(message: str, path: Path, content: bytes, offset: int) -> bool:
    """Whether a message names file and part: the mebibyte, the line, or the document as one."""
    if path.suffix == ".jsonl":
        line = content[:offset].count(b"\n") + 1
        return f"{path}:{line:,} isn't a row" in message
    _, _, problem = message.partition(str(path))
    if found := re.match(r" is damaged between bytes ([\d,]+) and ([\d,]+) ", problem):
        start, stop = (int(number.replace(",", "")) for number in found.groups())
        return start <= offset < stop
    if found := re.match(r" isn't UTF-8 at byte ([\d,]+)", problem):
        return abs(int(found.group(1).replace(",", "")) - offset) < 4
    is_sealed = content.endswith(b'"\n}\n')
    return (
        is_sealed and re.match(r" (doesn't end with its|was altered: its) SHA", problem) is not None
    )


def test_every_flipped_bit_is_found_and_named(targets):
    unseen = find_unseen(targets, NUM_FLIPS)
    shown = "\n".join(unseen[:50])
    assert not unseen, f"seed {SEED}, {len(unseen)} of {NUM_FLIPS} not found or named:\n{shown}"
    for target in targets:  # and all is as it was
        if target.path.name != PLAN:
            target.read()
