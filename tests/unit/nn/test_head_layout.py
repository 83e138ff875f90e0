import math

import pytest
import torch

from bertkit.nn.head_layout import HeadLayout, group_lengths, lay_out_heads

CPU = torch.device("cpu")


def test_rows_are_scattered_to_their_places_with_zeros_between():
    layout = HeadLayout.of(torch.tensor([3, 0]), num_places=5)
    rows = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    places = layout.scatter(rows)
    assert places.tolist() == [[3, 4], [0, 0], [0, 0], [1, 2], [0, 0]]
    assert torch.equal(layout.gather(places), rows)


def test_the_way_back_is_the_derivative():
    layout = HeadLayout.of(torch.tensor([3, 0]), num_places=5)
    rows = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    places = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(layout.scatter, rows)
    assert torch.autograd.gradcheck(layout.gather, places)


@pytest.mark.parametrize("lengths", [(2, 3, 1), (2, 2), (4,), (8, 2, 7, 9, 1, 2)])
def test_heads_go_to_rows_of_their_sequence(lengths):
    parts, heads = 3, 2
    tokens = torch.arange(1.0, sum(lengths) * parts * heads + 1).view(-1, parts, heads, 1)
    blocks = lay_out_heads(lengths, group_lengths(lengths, 0.75), parts, heads, CPU)
    rows = blocks.layout.scatter(tokens.flatten(0, 2))
    parted = rows.split([parts * math.prod(shape) for shape in blocks.shapes])
    sequences = tokens.split(lengths)
    for group, block, shape in zip(
        group_lengths(lengths, 0.75), parted, blocks.shapes, strict=True
    ):
        for index, number in enumerate(group):
            row = block.view(parts, *shape)[:, index].permute(2, 0, 1)
            assert torch.equal(row[: lengths[number]], sequences[number][..., 0])
            assert not row[lengths[number] :].any()
    assert torch.equal(blocks.layout.gather(rows), tokens.flatten(0, 2))


def test_sequences_of_similar_length_share_a_block():
    assert group_lengths((8, 2, 7, 9, 1, 2), 0.75) == [[3, 0, 2], [1, 5], [4]]
    assert group_lengths((4, 3), 0.75) == [[0, 1]]
    assert group_lengths((2, 9), 0.0) == [[1, 0]]
    lengths = (8, 2, 7, 9, 1, 2)
    blocks = lay_out_heads(lengths, group_lengths(lengths, 0.75), 1, 2, CPU)
    assert blocks.shapes == ((3, 2, 9), (2, 2, 2), (1, 2, 1))
    mask, *others = blocks.masks
    assert mask is not None
    assert mask.sum(dim=1).tolist() == [9, 8, 7]
    assert others == [None, None]
