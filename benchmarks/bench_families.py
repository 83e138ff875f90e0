"""Other encoders beside where they come from: embedding texts, and steps of training.

    python benchmarks/bench_families.py --data data/ --rounds 5

RoBERTa, MPNet and ModernBERT of their published sizes ("base"), with random weights, which are as
fast as trained ones, and a tokenizer of the family's kind that is trained on the texts. All sides
run in one process on two threads, in turns; a round begins with another side each time.

- Embedding: the sets of `text_sets.py`, as in `bench_embed.py`, beside sentence-transformers at
  its default batch size and at the best of five, in float32 and in bf16. `bertkit` runs in the
  precision that it takes by itself. The vectors are compared.
- Steps of training: forward, backward, clipping and fused AdamW, beside transformers with SDPA
  attention where the family has it, in float32, which is its default, and in bf16. `bertkit` takes
  steps in the precision that it chooses by itself, and in float32. `words` is the masked language
  model with 15 % of the tokens to predict, `labels` the classification of sequences. Both get the
  same batches of texts in random order, and `grouped` is transformers with batches of texts of
  similar length, which have hardly any padding. Freed memory is kept for all, as `bertkit pretrain`
  keeps it. Before, the losses of a batch without dropout in float32 are compared. Speed is in real
  tokens per second.
"""

import random
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))  # the tests know each family's tokenizer

import torch
import torch.nn.functional as F
import transformers
from tests.tokenizer_folders import make_tokenizer
from torch import Tensor, nn

from bench_embed import DEFAULT_BATCH_SIZE, IN_BF16, IN_FP32, OURS, THEIRS, THEIRS_AT_BEST, Embed
from bench_embed import describe as describe_embedding
from bench_embed import measure as measure_embedding
from bertkit.models.bert.fine_tuning import BertForSequenceClassification
from bertkit.models.bert.heads import BertForMaskedLM
from bertkit.nn.packing import PackedBatch
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.device import choose_precision, prepare_memory
from devices import Place
from embedding_peers import MAX_LENGTH, build_sentence_transformers, encode, load_embedder
from program import build_parser, list_versions, write_figures
from sides import Stepper
from text_sets import read_set
from turns import begin_table, compare_rates, describe_rates, take_turns

SETS = ("short", "paragraphs")
VOCABULARY = 30_000  # entries of the trained tokenizers, at most
BATCH_SIZES = {"short": 32, "paragraphs": 8}
MASKED_SHARE = 0.15
IGNORED = -100  # the label of a token that isn't to be predicted
NUM_LABELS = 2
TINY = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 64,
}
SIZES: dict[str, dict[str, int]] = {"base": {}, "tiny": TINY}


class Family(NamedTuple):
    """What transformers calls a family, and what its published config has beside the defaults."""

    prefix: str
    changes: Mapping[str, Any]


FAMILIES = {
    "roberta": Family("Roberta", {"vocab_size": 50_265, "max_position_embeddings": 514}),
    "mpnet": Family("MPNet", {"max_position_embeddings": 514}),
    "modernbert": Family("ModernBert", {}),
}


def main() -> None:
    parser = build_parser(__doc__, "families.json", rounds=5)
    parser.add_argument("--families", nargs="+", default=[*FAMILIES], choices=FAMILIES)
    parser.add_argument("--sets", nargs="+", default=SETS, choices=SETS)
    parser.add_argument("--size", default="base", choices=SIZES)
    parser.add_argument("--every", type=int, default=1, help="take only every so manieth text")
    parser.add_argument("--parts", nargs="+", default=[*PARTS], choices=PARTS)
    arguments = parser.parse_args()
    place = Place.begin()
    prepare_memory(place.device)
    texts = {name: read_set(arguments.data, name)[:: arguments.every] for name in arguments.sets}
    results = []
    for family in arguments.families:
        with tempfile.TemporaryDirectory() as scratch:
            bench = Bench.begin(Path(scratch), family, arguments.size, texts, place)
            for name in texts:
                for part in arguments.parts:
                    labels = {"family": family, "set": name, "part": part}
                    results.append({**labels, **PARTS[part](bench, name, arguments.rounds)})
                    print(describe(results[-1]), flush=True)
                    machine = {**place.describe(), **list_versions("sentence-transformers")}
                    write_figures(arguments.output, machine, results=results)


Batches = list[list[list[int]]]
Given = tuple[Any, dict[str, Tensor]]  # a batch for bertkit, and for transformers


@dataclass(frozen=True)
class Bench:
    """A family's folder for both sides, and the texts."""

    folder: Path
    prefix: str
    texts: Mapping[str, Sequence[str]]
    place: Place

    @classmethod
    def begin(
        cls,
        folder: Path,
        family: str,
        size: str,
        texts: Mapping[str, Sequence[str]],
        place: Place,
    ) -> "Bench":
        """Write the folder of an encoder with random weights, as sentence-transformers does."""
        from sentence_transformers import SentenceTransformer
        from sentence_transformers.sentence_transformer import modules as st

        prefix, changes = FAMILIES[family]
        ids = write_tokenizer(folder / "encoder", family, [*texts.values()])
        config = getattr(transformers, f"{prefix}Config")(**changes, **SIZES[size], **ids)
        torch.manual_seed(0)
        getattr(transformers, f"{prefix}Model")(config).save_pretrained(folder / "encoder")
        encoder = st.Transformer(str(folder / "encoder"), max_seq_length=MAX_LENGTH)
        modules = [encoder, st.Pooling(config.hidden_size, "mean"), st.Normalize()]
        SentenceTransformer(modules=modules, device="cpu").save(str(folder / "sentences"))
        return cls(folder, prefix, texts, place)

    def draw(self, name: str, count: int) -> tuple[Batches, Batches]:
        """Ids of batches of texts in random order, and of texts of similar length."""
        sequences = encode(Tokenizer.load(self.folder / "encoder"), self.texts[name])
        random.Random(0).shuffle(sequences)
        size = min(BATCH_SIZES[name], len(sequences) // count)
        found = []
        for order in (sequences, sorted(sequences, key=len)):
            batches = [order[start : start + size] for start in range(0, len(order), size)]
            found.append(random.Random(0).sample(batches, count))
        return found[0], found[1]


def write_tokenizer(folder: Path, family: str, texts: Sequence[Sequence[str]]) -> dict[str, int]:
    """Train a tokenizer of the family's kind, and return what the config says of it."""
    make_tokenizer(folder, family)
    layout = transformers.PreTrainedTokenizerFast.from_pretrained(folder)
    trained = layout.train_new_from_iterator(texts, VOCABULARY, show_progress=False)
    trained.save_pretrained(folder)
    ids = {"pad_token_id": trained.pad_token_id}
    for first, last in (("bos", "eos"), ("cls", "sep")):
        ids |= {f"{first}_token_id": trained.cls_token_id, f"{last}_token_id": trained.sep_token_id}
    return ids


def embed(bench: Bench, name: str, rounds: int) -> dict[str, Any]:
    """Vectors of texts."""
    folder, place = bench.folder / "sentences", bench.place
    theirs = build_sentence_transformers(folder, place)
    in_bf16 = build_sentence_transformers(folder, replace(place, precision="bf16"))
    ours = {
        side: load_embedder(folder, *OURS[side], place) for side in ("bertkit", "bertkit" + IN_FP32)
    }
    fixed: dict[str, Embed] = {**ours, THEIRS: lambda texts: theirs(texts, DEFAULT_BATCH_SIZE)}
    sized = {THEIRS_AT_BEST: theirs, THEIRS_AT_BEST + IN_BF16: in_bf16}
    tokenizer = Tokenizer.load(folder)
    return measure_embedding(bench.texts[name], fixed, sized, rounds, place, tokenizer)


def predict_words(bench: Bench, name: str, rounds: int) -> dict[str, Any]:
    """Steps of a masked language model."""
    mask_id = Tokenizer.load(bench.folder / "encoder").mask_id
    generator = torch.Generator().manual_seed(0)

    def give(sequences: list[list[int]]) -> Given:
        batch = PackedBatch.from_single(sequences)
        is_masked = torch.rand(batch.num_tokens, generator=generator) < MASKED_SHARE
        is_masked[0] = True
        labels = batch.input_ids.where(is_masked, torch.tensor(IGNORED))
        hidden = batch.input_ids.masked_fill(is_masked, mask_id)
        rows, label_rows = (torch.split(ids, list(batch.lengths)) for ids in (hidden, labels))
        places = is_masked.nonzero().flatten()
        ours = replace(batch, input_ids=hidden), places, labels[places]
        return ours, {**pad(rows), "labels": fill(label_rows, IGNORED)}

    def loss_of(model: BertForMaskedLM, batch: tuple[PackedBatch, Tensor, Tensor]) -> Tensor:
        return model.masked_loss(*batch)[0] / len(batch[1])

    drawn = bench.draw(name, rounds + 1)
    return step(bench, BertForMaskedLM, [[*map(give, each)] for each in drawn], loss_of)


def predict_labels(bench: Bench, name: str, rounds: int) -> dict[str, Any]:
    """Steps of a classifier of sequences."""

    def give(sequences: list[list[int]]) -> Given:
        labels = torch.arange(len(sequences)) % NUM_LABELS
        rows = [torch.tensor(ids) for ids in sequences]
        return (PackedBatch.from_single(sequences), labels), {**pad(rows), "labels": labels}

    def loss_of(model: BertForSequenceClassification, batch: tuple[PackedBatch, Tensor]) -> Tensor:
        return F.cross_entropy(model.scores(batch[0]), batch[1])

    drawn = bench.draw(name, rounds + 1)
    kind = BertForSequenceClassification
    return step(bench, kind, [[*map(give, each)] for each in drawn], loss_of)


def step(
    bench: Bench, kind: Any, drawn: list[list[Given]], loss_of: Callable[[Any, Any], Tensor]
) -> dict[str, Any]:
    """Compare losses, and take steps in turns; the first batch doesn't count."""
    head = kind.__name__.removeprefix("Bert")
    model = getattr(transformers, f"{bench.prefix}{head}").from_pretrained(bench.folder / "encoder")
    model.save_pretrained(bench.folder / head)
    own = kind.from_pretrained(bench.folder / head)
    size, place = own.config.hidden_size, bench.place
    chosen = replace(place, precision=choose_precision("auto", place.device, "training", size))
    in_bf16 = replace(place, precision="bf16")
    random_order, grouped = drawn
    packed, padded = zip(*random_order, strict=True)
    theirs = Stepper(model, place)
    sides: dict[str, tuple[Stepper, Callable[..., Tensor], Sequence[Any]]] = {
        "bertkit": (Stepper(own, chosen), loss_of, packed),
        "bertkit" + IN_FP32: (Stepper(own, place), loss_of, packed),
        "transformers": (theirs, find_their_loss, padded),
        "transformers" + IN_BF16: (Stepper(model, in_bf16), find_their_loss, padded),
        "grouped": (theirs, find_their_loss, [batch for _, batch in grouped]),
    }
    losses = {
        side: stepper.find_loss(partial(find, stepper.model, batches[0]))
        for side, (stepper, find, batches) in sides.items()
        if side in ("bertkit" + IN_FP32, "transformers")
    }
    bench.place.check_losses(f"{bench.prefix}{head}", losses)
    queues = {side: iter(batches) for side, (_, _, batches) in sides.items()}

    def take(side: str) -> None:
        stepper, find, _ = sides[side]
        stepper.take(partial(find, stepper.model, next(queues[side])))

    seconds = take_turns({side: partial(take, side) for side in sides}, len(random_order) - 1)
    masks = {
        side: [each["attention_mask"] for _, each in batches[1:]]
        for side, batches in (("transformers", random_order), ("grouped", grouped))
    }
    rates = {
        side: [
            time / int(mask.sum())
            for time, mask in zip(times, masks.get(side, masks["transformers"]), strict=True)
        ]
        for side, times in seconds.items()
    }
    return {
        "sequences": len(masks["grouped"][0]),
        "losses": losses,
        "padding": {
            side: 1 - float(torch.cat([mask.flatten() for mask in each]).float().mean())
            for side, each in masks.items()
        },
        **compare_rates(rates, 1, "tokens", [*sides][:2], [*sides][2:]),
        "seconds": seconds,
    }


def find_their_loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    loss: Tensor = model(**batch).loss
    return loss


def pad(rows: Sequence[Tensor]) -> dict[str, Tensor]:
    """The inputs of transformers' models; the mask hides what stands at padding."""
    return {"input_ids": fill(rows, 1), "attention_mask": fill([row * 0 + 1 for row in rows], 0)}


def fill(rows: Sequence[Tensor], value: int) -> Tensor:
    return nn.utils.rnn.pad_sequence([*rows], batch_first=True, padding_value=value)


PARTS = {"embed": embed, "words": predict_words, "labels": predict_labels}


def describe(result: dict[str, Any]) -> str:
    title = f"{result['family']}, {result['set']}, {result['part']}"
    if result["part"] == "embed":
        return f"{title}\n{describe_embedding(result)}"
    columns = ("", "side", "speed", *(f"beside {peer}" for peer in result["ratios"]["bertkit"]))
    return "\n".join([begin_table(*columns), *describe_rates(title, result, "tokens")])


if __name__ == "__main__":
    main()
