"""Recurrent nets over packed sequences read each as if it were alone."""

import torch
from tests.closeness import assert_close
from torch import nn

from bertkit.nn.packing import PackedBatch
from bertkit_studies.recurrent.packed_nets import Steps, join_ends, run_net

LENGTHS = (3, 1, 5)


def test_packed_sequences_are_read_as_each_alone():
    torch.manual_seed(0)
    lstm = nn.LSTM(4, 6, num_layers=2, bidirectional=True).double()
    tokens = torch.randn(sum(LENGTHS), 4, dtype=torch.float64)
    found = run_net(lstm, tokens, LENGTHS)
    alone = [lstm(part)[0] for part in tokens.split(LENGTHS)]
    assert_close(found, torch.cat(alone))
    ends = join_ends(found, PackedBatch.from_single([[5] * length for length in LENGTHS]))
    for row, part in zip(ends, alone, strict=True):
        assert_close(row, torch.cat([part[-1, :6], part[0, 6:]]))


def test_steps_have_first_tokens_first_and_longest_sequences_first():
    steps = Steps.of([2, 3, 1], torch.device("cpu"))
    assert steps.batch_sizes.tolist() == [3, 2, 1]
    assert steps.order.tolist() == [2, 0, 5, 3, 1, 4]
    assert steps.order[steps.places].tolist() == [0, 1, 2, 3, 4, 5]
    back = Steps.of([2, 3, 1], torch.device("cpu"), is_backwards=True)
    assert back.order.tolist() == [4, 1, 5, 3, 0, 2]
