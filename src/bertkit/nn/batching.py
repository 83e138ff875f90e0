"""Batches of sequences of similar length, under a token budget."""

from collections.abc import Iterator, Sequence

MAX_PADDING = 2  # most tokens of a batch, padding included, as a multiple of the token budget


def plan_batches(lengths: Sequence[int], tokens_per_batch: int) -> Iterator[list[int]]:
    """Yield the sequence indices of each batch: similar lengths together, up to a token budget.

    The longest come first, so that a lack of memory shows at once. A sequence longer than the
    budget is a batch of its own. Padded to its longest sequence, a batch of several stays within
    twice the budget, because attention on a GPU in float32 pads.
    """
    chosen: list[int] = []
    num_tokens = 0
    for index in sorted(range(len(lengths)), key=lengths.__getitem__, reverse=True):
        is_full = num_tokens + lengths[index] > tokens_per_batch
        longest = lengths[chosen[0]] if chosen else 0
        if chosen and (is_full or longest * (len(chosen) + 1) > MAX_PADDING * tokens_per_batch):
            yield chosen
            chosen, num_tokens = [], 0
        chosen.append(index)
        num_tokens += lengths[index]
    if chosen:
        yield chosen
