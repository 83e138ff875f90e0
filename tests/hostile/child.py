"""Opens each hostile folder in a process of its own, watched, and says what came of it.

    python -m tests.hostile.child SCRATCH MODULES FIRST [BUG [DEFECT]]

MODULES are joined by commas; `pytorch_files:1` is the first case of one. It prints a line of JSON a
case. A case that hangs, or takes so much memory that nothing helps, ends the process; who started
it sees which line is missing and begins again behind it.
"""

import contextlib
import ctypes
import gc
import importlib
import json
import os
import re
import resource
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from tests.hostile.case import OUTSIDE, Case
from tests.hostile.whole import whole_files
from tests.waiting import end_when_stuck

import bertkit
from bertkit.base.errors import BertkitError
from bertkit.base.wings import ANATOMIES, CONFIGS, list_installed, load_object
from bertkit.checkpoints import huggingface, safetensors_file
from bertkit.checkpoints.families import FAMILIES
from bertkit.inference.torch_model import TorchModel
from bertkit.jobs.inspect import describe
from bertkit.models.open_model import OpenModel

MAX_MESSAGE_CHARS = 2000
ADDRESS_SPACE_BYTES = 600 << 20  # beside the files: less than what is refused shows as an error
TOKENIZER_FILES = ("vocab.txt", "tokenizer.json", "tokenizer_config.json")
# What no file may bring about, by how the event's name begins.
FORBIDDEN_EVENTS = (
    "os.system",
    "os.exec",
    "os.fork",
    "os.posix_spawn",
    "os.spawn",
    "os.startfile",
    "os.remove",
    "os.rename",
    "os.mkdir",
    "os.rmdir",
    "os.chmod",
    "os.link",
    "os.symlink",
    "os.truncate",
    "os.kill",
    "pty.spawn",
    "subprocess.",
    "socket.",
    "urllib.",
    "shutil.",
    "pickle.",
    "marshal.",
    "ctypes.dlopen",
    "compile",
    "webbrowser.",
)
OUR_MODULES = ("bertkit", "torch")


@dataclass(frozen=True)
class Outcome:
    """What came of a case.

    Attributes:
        name: the case's.
        defect: its class.
        problem: why it isn't as it should be; empty where it is.
        seconds: of computing, of all its openings together; a signal ends those that never end.
        extra_bytes: most memory that they took beside what was taken before and the files' size.
    """

    name: str
    defect: str
    problem: str
    seconds: float
    extra_bytes: int


class Watch:
    """An audit hook that notes and refuses what no file may bring about, while it is on."""

    def __init__(self) -> None:
        self.is_on = False
        self.seen: list[str] = []
        sys.addaudithook(self._hook)

    @contextlib.contextmanager
    def on(self) -> Iterator[None]:
        """Watch a block."""
        self.is_on, self.seen = True, []
        try:
            yield
        finally:
            self.is_on = False

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.is_on and self._is_forbidden(event, arguments):
            self.seen.append(f"{event} {arguments!r:.200}")
            raise RuntimeError(f"a file brought about {event}")

    @staticmethod
    def _is_forbidden(event: str, arguments: tuple[Any, ...]) -> bool:
        if event == "open":
            _, mode, flags = arguments
            is_writing = flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
            return bool(is_writing) or (mode is not None and bool(set(mode) & set("wax+")))
        if event == "import":
            name = arguments[0]
            return name not in sys.modules and name.partition(".")[0] not in OUR_MODULES
        return event.startswith(FORBIDDEN_EVENTS)


def find_doors(case: Case) -> list[Callable[[Path], object]]:
    """The ways in which a user opens such a folder."""
    claimed = find_claim(case)
    doors: list[Callable[[Path], object]] = [getattr(bertkit, claimed).from_pretrained]
    if any(name.endswith(TOKENIZER_FILES) for name in (*case.files, *case.links, *case.pipes)):
        doors.append(bertkit.Tokenizer.load)
        if claimed == "BertForPreTraining":
            doors.append(
                lambda path: TorchModel.load(bertkit.BertForPreTraining, path, device="cpu")
            )
    if "modules.json" in (*case.files, *case.links):
        doors.append(lambda path: OpenModel.open(path).sentences)
    return [*doors, describe]


def open_all(doors: list[Callable[[Path], object]], folder: Path) -> list[BertkitError]:
    """Open a folder by each door; the errors, the first door's first.

    Raises:
        Exception: anything that isn't one of bertkit's errors.
    """
    errors = []
    for door in doors:
        try:
            door(folder)
        except BertkitError as error:
            error.__context__ = None  # nor its traceback: they would keep what was read
            errors.append(error.with_traceback(None))
    return errors


def find_claim(case: Case) -> str:
    """The model that a folder claims to be, or the encoder alone."""
    try:
        names = json.loads(case.files["config.json"]).get("architectures")
        return names[0] if names[0] in bertkit.__all__ else "BertModel"
    except (KeyError, ValueError, RecursionError, AttributeError, TypeError, IndexError):
        return "BertModel"


def judge(case: Case, errors: list[BertkitError]) -> str:
    """In what the errors aren't those of the case; empty where they are."""
    if case.error is None:
        return f"should be accepted, and came to {errors[0]!r:.500}" if errors else ""
    if not errors:
        return f"should be {case.error.__name__}, and was accepted"
    first = errors[0]
    if type(first) is not case.error or not re.search(case.match, str(first)):
        return f"should be {case.error.__name__} ({case.match}), and is {first!r:.500}"
    for error in errors:
        if len(str(error)) > MAX_MESSAGE_CHARS or not str(error).isprintable():
            return f"has a message that no terminal should show: {str(error)[:300]!r}"
    return ""


def run_case(case: Case, scratch: Path, watch: Watch) -> Outcome:
    """Write, open and remove a folder."""
    folder, canary = scratch / "model", scratch / "canary"
    opened, doors = case.write(folder), find_doors(case)
    before = sorted(folder.rglob("*"))
    trim_memory()
    start_bytes = read_status("VmRSS")
    limit = read_status("VmSize") + ADDRESS_SPACE_BYTES + 2 * case.size_bytes
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
    start = time.process_time()
    try:
        with end_when_stuck(), watch.on():
            errors = open_all(doors, opened)
        problem = judge(case, errors)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a failure
        problem = f"came to {type(error).__name__}: {error!s:.300}"
    seconds = time.process_time() - start
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    extra_bytes = read_status("VmHWM") - start_bytes - case.size_bytes
    if watch.seen:
        problem = f"brought about {watch.seen[0]}"
    elif any(canary.iterdir()) or sorted(folder.rglob("*")) != before:
        problem = "left files behind"
    shutil.rmtree(folder)
    return Outcome(str(case), case.defect, problem, seconds, max(0, extra_bytes))


def trim_memory() -> None:
    """Give freed memory back, and begin to look for the peak anew."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")


def read_status(name: str) -> int:
    """A row of the process's status, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) << 10
    raise ValueError(name)


def plant(bug: str) -> None:
    """Break one of the guards, so that the suite can be seen to fail."""
    if bug == "no header limit":
        safetensors_file.HEADER_LIMIT_BYTES = 1 << 62
    elif bug == "header is run":
        safetensors_file.parse_json = lambda text, source: os.system("true")
    elif bug == "names lead anywhere":
        huggingface.find_member = lambda folder, name: folder / name
    elif bug == "takes memory":
        safetensors_file.parse_json = lambda text, source: b"x" * (400 << 20)
    elif bug:
        raise ValueError(bug)


def main(scratch: Path, modules: str, first: int, bug: str = "", only: str = "") -> None:
    """Run the cases of some modules from a number on."""
    (scratch / "canary").mkdir(exist_ok=True)
    os.chdir(scratch / "canary")
    watch = Watch()
    whole = Case("", 0, dict(whole_files()), None, "")
    if not (scratch / OUTSIDE).exists():
        whole.write(scratch / OUTSIDE)
    assert not open_all(find_doors(whole), scratch / OUTSIDE)  # loads what is lazy
    for table in (CONFIGS, ANATOMIES):
        for address in list_installed(table).values():
            load_object(address)
    assert all(family.config for family in FAMILIES.values())
    importlib.import_module("bertkit.checkpoints.pytorch_file")
    gc.collect()
    gc.freeze()  # what is loaded needn't be looked through before each case
    plant(bug)
    for case in islice(all_cases(modules.split(",")), first, None):
        if only in case.defect:
            shutil.rmtree(scratch / "model", ignore_errors=True)  # of a process that was ended
            sys.stdout.write(f"{json.dumps(asdict(run_case(case, scratch, watch)))}\n")
            sys.stdout.flush()


def all_cases(modules: list[str]) -> Iterator[Case]:
    """The cases of each module in turn."""
    for module in modules:
        name, _, limit = module.partition(":")
        cases = importlib.import_module(f"tests.hostile.{name}").cases()
        yield from islice(cases, int(limit) if limit else None)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), *sys.argv[4:])
