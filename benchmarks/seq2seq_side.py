"""One side of `bench_seq2seq_step.py`: a model in a process of its own, which steps when told to.

    python benchmarks/seq2seq_side.py {bertkit,transformers,kept} FOLDER DEVICE PRECISION

It first tells the loss of the first pairs without dropout and the batch size that it takes, then
reads numbers of steps from standard input, a line each, and answers with a line of JSON each.
"""

import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from bertkit.decoders.model import EncoderDecoderModel
from bertkit.decoders.seq2seq.order import TokenBatchOrder
from bertkit.decoders.seq2seq.token_pairs import PairBatch, TokenPairs, TokenTexts
from bertkit.training.device import prepare_memory
from devices import Place
from program import Answer, answer, be_quiet, obey
from sides import Stepper

NUM_CHECKED = 64  # pairs whose loss is compared
TOKENS_PER_BATCH = {"cpu": 4096, "cuda": 32768}
# Pairs of a step, of which the peer takes the fastest.
CANDIDATES = {"cpu": (32, 64, 128, 256), "cuda": (128, 256, 512, 1024)}
TRIALS = 3
BATCHES_PER_BUCKET = 50  # that are sorted by length together
IGNORED = -100

Loss = Callable[[np.ndarray], tuple[Tensor, int]]  # numbers of pairs → mean loss, places
Examples = Callable[[int], np.ndarray]  # step → numbers of pairs


def main() -> None:
    side, name, *words = sys.argv[1:]
    folder, place = Path(name), Place.of(*words)
    if side != "transformers":
        prepare_memory(torch.device("cpu"))  # as `bertkit finetune` does
    pairs = load_pairs(folder / "pairs.npz")
    build = build_bertkit if side == "bertkit" else build_transformers
    model, loss_of = build(folder / "model", pairs, place)
    stepper = Stepper(model, place)
    loss = stepper.find_loss(lambda: loss_of(np.arange(NUM_CHECKED))[0])

    def step(numbers: np.ndarray) -> Answer:
        places = 0

        def find_loss() -> Tensor:
            nonlocal places
            found, places = loss_of(numbers)
            return found

        taken = stepper.take(find_loss)
        return {**taken, "tokens": int(pairs.lengths[numbers].sum()), "places": places}

    size, examples = choose_order(side, pairs, step, place)
    place.count_memory_anew()
    answer({"loss": loss, "batch": size})
    obey(lambda line: step(examples(int(line))))


def load_pairs(path: Path) -> TokenPairs:
    arrays = np.load(path)
    sides = (TokenTexts(arrays[f"{side}_ids"], arrays[f"{side}_offsets"]) for side in ("s", "t"))
    return TokenPairs(*sides)


def choose_order(
    side: str, pairs: TokenPairs, step: Callable[[np.ndarray], Answer], place: Place
) -> tuple[int, Examples]:
    """Ours: up to a budget of tokens, in random order. Theirs: buckets, of the fastest size."""
    if side == "bertkit":
        budget = TOKENS_PER_BATCH[place.device.type]
        return budget, TokenBatchOrder(pairs.lengths, budget, 0).examples
    speeds = {}
    for size in CANDIDATES[place.device.type]:
        examples = bucket(pairs, size)
        done = [step(examples(number)) for number in range(TRIALS + 1)][1:]
        speeds[size] = max(each["tokens"] / each["seconds"] for each in done)
    best = max(speeds, key=speeds.__getitem__)
    return best, bucket(pairs, best)


def bucket(pairs: TokenPairs, size: int) -> Examples:
    """Batches of similar length: each some dozens of batches are sorted by length, then mixed."""
    generator = np.random.default_rng(0)
    order = generator.permutation(len(pairs))
    batches = []
    for start in range(0, len(order), size * BATCHES_PER_BUCKET):
        lot = order[start : start + size * BATCHES_PER_BUCKET]
        lot = lot[np.lexsort((pairs.targets.lengths[lot], pairs.sources.lengths[lot]))]
        batches += [lot[place : place + size] for place in range(0, len(lot), size)]
    places = generator.permutation(len(batches))
    return lambda number: batches[places[number % len(batches)]]


def build_bertkit(folder: Path, pairs: TokenPairs, place: Place) -> tuple[nn.Module, Loss]:
    model = EncoderDecoderModel.from_pretrained(folder).to(place.device)

    def loss_of(numbers: np.ndarray) -> tuple[Tensor, int]:
        batch = PairBatch.of(pairs, numbers).to(place.device)
        loss, _ = model.next_loss(batch.source, batch.target, batch.labels)
        return loss / len(batch.labels), batch.num_tokens

    return model, loss_of


def build_transformers(folder: Path, pairs: TokenPairs, place: Place) -> tuple[nn.Module, Loss]:
    """Theirs, with SDPA attention and dynamic padding."""
    from transformers import EncoderDecoderModel as TheirModel

    be_quiet()
    warnings.filterwarnings("ignore", category=FutureWarning)  # of models before version 4.12
    model = TheirModel.from_pretrained(folder, attn_implementation="sdpa", dtype=torch.float32)
    model.to(place.device)

    def loss_of(numbers: np.ndarray) -> tuple[Tensor, int]:
        chosen = pairs.choose(numbers)
        sources, targets = pad(chosen.sources), pad(chosen.targets)
        inputs, labels = targets[:, :-1].clone(), targets[:, 1:].clone()
        lengths = torch.from_numpy(chosen.targets.lengths)[:, None] - 1
        is_written = torch.arange(inputs.shape[1]) < lengths
        labels[~is_written] = IGNORED
        inputs[~is_written] = 0
        given = {
            "input_ids": sources,
            "attention_mask": mask_of(chosen.sources, sources),
            "decoder_input_ids": inputs,
            "decoder_attention_mask": is_written.long(),
            "labels": labels,
        }
        found = model(
            **{name: each.to(place.device, non_blocking=True) for name, each in given.items()}
        )
        return found.loss, sources.numel() + inputs.numel()

    return model, loss_of


def pad(texts: TokenTexts) -> Tensor:
    """Texts in rows."""
    longest = int(texts.lengths.max())
    rows = np.zeros((len(texts), longest), dtype=np.int64)
    rows[np.arange(longest) < texts.lengths[:, None]] = texts.ids
    return torch.from_numpy(rows)


def mask_of(texts: TokenTexts, rows: Tensor) -> Tensor:
    return (torch.arange(rows.shape[1]) < torch.from_numpy(texts.lengths)[:, None]).long()


if __name__ == "__main__":
    main()
