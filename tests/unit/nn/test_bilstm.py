import torch
from torch import nn

from bertkit.nn.bilstm import join_ends, read_both_ways

LENGTHS = (3, 1, 5)


def test_packed_sequences_are_read_as_each_alone():
    torch.manual_seed(0)
    lstm = nn.LSTM(4, 6, num_layers=2, bidirectional=True).double()
    tokens = torch.randn(sum(LENGTHS), 4, dtype=torch.float64)
    found = read_both_ways(lstm, tokens, LENGTHS)
    alone = [lstm(part)[0] for part in tokens.split(LENGTHS)]
    torch.testing.assert_close(found, torch.cat(alone), rtol=1e-12, atol=1e-12)
    ends = join_ends(found, LENGTHS)
    for row, part in zip(ends, alone, strict=True):
        torch.testing.assert_close(row, torch.cat([part[-1, :6], part[0, 6:]]))
