"""Which sequences are computed together."""

from collections.abc import Iterator, Sequence

MAX_PADDING = 2  # places per token of the budget, where attention lays sequences out in rows


def plan_batches(lengths: Sequence[int], tokens_per_batch: int) -> Iterator[list[int]]:
    """Numbers of the sequences of each batch: similar lengths together, up to a token budget.

    The longest come first, so that a lack of memory shows at once. A sequence that is longer than
    the budget is a batch of its own. A long one takes only so many short ones along that rows of
    its length stay within twice the budget: on a GPU in float32, attention pads.
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
