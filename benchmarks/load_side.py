"""One cold process of `bench_load.py`: load a model, run it once, say what that took.

    python benchmarks/load_side.py bertkit folder/

Imports, and the loading of a tiny model beside it, come first and aren't counted. Prints JSON.
"""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from peaks import read_status
from program import be_quiet

NUM_THREADS = 2


def main() -> None:
    side, folder = sys.argv[1], Path(sys.argv[2])
    torch.set_num_threads(NUM_THREADS)
    load = find_loader(side)
    ids = torch.arange(1, 33).reshape(1, 32)
    with torch.inference_mode():
        load(folder.parent / "tiny" / folder.name)(ids)
        Path("/proc/self/clear_refs").write_text("5")  # the peak is looked for anew
        before = read_status("VmRSS")
        start = time.perf_counter()
        model = load(folder)
        loaded = time.perf_counter()
        peak_loaded = read_status("VmHWM")
        output = model(ids)
        done = time.perf_counter()
    answer = {
        "load_seconds": loaded - start,
        "seconds": done - start,
        "load_bytes": peak_loaded - before,
        "bytes": read_status("VmHWM") - before,
        "sum": float(output[0].double().abs().sum()),
    }
    print(json.dumps(answer))


def find_loader(side: str) -> Callable[[Path], Callable[[torch.Tensor], Any]]:
    """How a side opens a folder, as a model that gives its hidden states first."""
    if side == "bertkit":
        from bertkit import BertModel

        def load_ours(folder: Path) -> Callable[[torch.Tensor], Any]:
            model = BertModel.from_pretrained(folder)
            return lambda ids: (model(ids).last_hidden_state,)

        return load_ours
    import transformers

    be_quiet()

    def load_theirs(folder: Path) -> Callable[[torch.Tensor], Any]:
        model = transformers.BertModel.from_pretrained(folder, dtype=torch.float32).eval()
        return lambda ids: model(ids, return_dict=False)

    return load_theirs


if __name__ == "__main__":
    main()
