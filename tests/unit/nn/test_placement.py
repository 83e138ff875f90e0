import pytest
import torch

from bertkit.nn.placement import Placement, place_heads

CPU = torch.device("cpu")


def test_rows_are_spread_over_their_places_with_zeros_between():
    placement = Placement.of(torch.tensor([3, 0]), num_places=5)
    rows = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    places = placement.spread(rows)
    assert places.tolist() == [[3, 4], [0, 0], [0, 0], [1, 2], [0, 0]]
    assert torch.equal(placement.gather(places), rows)


def test_the_way_back_is_the_derivative():
    placement = Placement.of(torch.tensor([3, 0]), num_places=5)
    rows = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    places = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(placement.spread, rows)
    assert torch.autograd.gradcheck(placement.gather, places)


@pytest.mark.parametrize("lengths", [(2, 3, 1), (2, 2), (4,)])
def test_heads_go_to_rows_of_their_sequence(lengths):
    parts, heads, longest = 3, 2, max(lengths)
    tokens = torch.arange(1.0, sum(lengths) * parts * heads + 1).view(-1, parts, heads, 1)
    placement = place_heads(lengths, parts, heads, CPU)
    rows = placement.spread(tokens.flatten(0, 2)).view(parts, len(lengths), heads, longest)
    for part in range(parts):
        for head in range(heads):
            sequences = tokens[:, part, head, 0].split(lengths)
            for sequence, (length, values) in enumerate(zip(lengths, sequences, strict=True)):
                row = rows[part, sequence, head]
                assert torch.equal(row[:length], values)
                assert not row[length:].any()
