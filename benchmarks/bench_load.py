"""Time and memory of loading a Base checkpoint (440 MB) beside transformers.

    python benchmarks/bench_load.py --rounds 9

Random weights of BERT-Base with its pooler, as `model.safetensors`, as `pytorch_model.bin` and as a
TensorFlow checkpoint. Each loading is a process of its own, in turns; its imports, and one loading
of a tiny model, come first and aren't counted; the files are in the system's cache. Both sides then
compute the hidden states of 32 tokens, so that weights that are mapped and not yet read are there:
the ratios of time are those of loading and computing together, and hidden states are compared.
Memory is the peak of the resident set, less what it was before. transformers reads no TensorFlow
checkpoints any more: its safetensors loading stands beside ours.
"""

import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))  # the tests write TensorFlow's format

import torch
from tests.bundles import to_variables, write_bundle

from bertkit.checkpoints.torch_tensors import export_tensors
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.encoder import BertModel
from peaks import check_system
from program import FOLDER, build_parser, run_program, write_figures
from turns import format_row, order_turn, show_ratio, spread

SIDES = ("bertkit", "transformers")
FORMATS = ("safetensors", "bin", "tensorflow")
FIGURES = ("load_seconds", "seconds", "load_bytes", "bytes")
MAX_DIFFERENCE = 1e-4


def main() -> None:
    parser = build_parser(__doc__, "load.json", data=None)
    parser.add_argument("--model", default="base")
    parser.add_argument("--formats", nargs="+", default=FORMATS, choices=FORMATS)
    parser.add_argument("--rounds", type=int, default=7, help="0 counts the first one, for a try")
    arguments = parser.parse_args()
    check_system()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "tiny").mkdir()
        write_models(folder, BertConfig.preset(arguments.model), list(arguments.formats))
        write_models(folder / "tiny", BertConfig.preset("tiny"), list(arguments.formats))
        results = [compare(folder, form, arguments.rounds) for form in arguments.formats]
    for result in results:
        print(describe(result))
    write_figures(arguments.output, results=results)


def write_models(folder: Path, config: BertConfig, formats: list[str]) -> None:
    torch.manual_seed(0)
    model = BertModel(config)
    tensors = export_tensors(model.state_dict(), config.names.table("BertModel"))
    for form in {*formats, "safetensors"}:
        model.save_pretrained(folder / form)
        weights = folder / form / "model.safetensors"
        if form == "bin":
            torch.save(tensors, folder / form / "pytorch_model.bin")
            weights.unlink()
        elif form == "tensorflow":
            write_bundle(folder / form, to_variables(tensors))
            (folder / form / "config.json").rename(folder / form / "bert_config.json")
            weights.unlink()


def compare(folder: Path, form: str, rounds: int) -> dict[str, Any]:
    """Load with each side in turn; each round begins with another side, the first doesn't count."""
    rows: dict[str, list[dict[str, float]]] = {side: [] for side in SIDES}
    for number in range(rounds + 1):
        for side in order_turn(SIDES, number):
            is_peer_of_tensorflow = side != "bertkit" and form == "tensorflow"
            rows[side].append(
                load(side, folder / ("safetensors" if is_peer_of_tensorflow else form))
            )
    sums = {side: rows[side][0]["sum"] for side in SIDES}
    if abs(sums["bertkit"] / sums["transformers"] - 1) > MAX_DIFFERENCE:
        raise SystemExit(f"{form}: the hidden states differ: {sums}")
    result: dict[str, Any] = {"format": form, "rounds": rounds}
    for figure in FIGURES:
        values = {side: [row[figure] for row in rows[side][min(1, rounds) :]] for side in SIDES}
        ratios = [
            theirs / ours
            for ours, theirs in zip(values["bertkit"], values["transformers"], strict=True)
        ]
        medians = {side: statistics.median(values[side]) for side in SIDES}
        result[figure] = {**medians, **spread(ratios, "ratio")}
    return result


def load(side: str, folder: Path) -> dict[str, float]:
    answer: dict[str, float] = json.loads(run_program(FOLDER / "load_side.py", side, folder))
    return answer


def describe(result: dict[str, Any]) -> str:
    cells = [result["format"]]
    for figure in FIGURES:
        row = result[figure]
        scale, unit = (1e6, "MB") if figure.endswith("bytes") else (1, "s")
        cells += [
            f"{row['bertkit'] / scale:,.2f} {unit}",
            f"{row['transformers'] / scale:,.2f} {unit}",
            show_ratio(row),
        ]
    return format_row(*cells)


if __name__ == "__main__":
    main()
