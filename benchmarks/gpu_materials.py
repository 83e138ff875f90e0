"""What the parts of `make gpu` read: shards of Python's documentation, and a stand-in for a model.

    python benchmarks/gpu_materials.py FOLDER

FOLDER gets `tokenizer/`, `shards/` and, where the package with all-MiniLM-L6-v2 isn't there,
`minilm/`; each is there only when it is whole.
"""

import sys
import tempfile
from pathlib import Path

from minilm import STAND_IN, has_package, write_stand_in
from pretraining_sides import prepare_documentation


def main() -> None:
    work = Path(sys.argv[1])
    work.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=work) as scratch:
        made = Path(scratch)
        prepare_documentation(made)
        if not has_package():
            write_stand_in(made / STAND_IN, made / "tokenizer")
        for name in (STAND_IN, "tokenizer", "shards"):  # the last one tells that all is there
            if (made / name).exists() and not (work / name).exists():
                (made / name).rename(work / name)


if __name__ == "__main__":
    main()
