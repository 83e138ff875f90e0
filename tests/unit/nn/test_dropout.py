import torch

from bertkit.nn.dropout import Dropout, drop, random_bytes


def test_it_drops_at_its_rate_and_keeps_the_mean():
    torch.manual_seed(0)
    dropped = drop(torch.ones(1_000_003), 0.1)
    share = float((dropped == 0).double().mean())
    assert abs(share - 26 / 256) < 0.002
    assert abs(float(dropped.double().mean()) - 1.0) < 0.002
    assert dropped.unique().numel() == 2


def test_neighbors_are_independent():
    torch.manual_seed(1)
    zeros = (drop(torch.ones(800_000), 0.5) == 0).view(-1, 8).double()
    correlations = torch.corrcoef(zeros.T) - torch.eye(8)
    assert float(correlations.abs().max()) < 0.02


def test_the_gradient_is_that_of_what_was_kept():
    values = torch.randn(1000, requires_grad=True)
    dropped = drop(values, 0.3)
    dropped.sum().backward()
    kept = dropped != 0
    assert torch.equal(values.grad != 0, kept)
    torch.testing.assert_close(dropped[kept], (values * values.grad)[kept])


def test_every_byte_is_as_likely():
    torch.manual_seed(2)
    counts = torch.bincount(random_bytes(2_560_000).int(), minlength=256).double()
    assert float((counts / 10_000 - 1).abs().max()) < 0.06


def test_a_seed_decides_and_evaluation_passes_through():
    values = torch.randn(64)
    layer = Dropout(0.5)
    torch.manual_seed(3)
    first = layer(values)
    torch.manual_seed(3)
    assert torch.equal(layer(values), first)
    assert not torch.equal(first, values)
    assert torch.equal(layer.eval()(values), values)
    assert drop(values, 0.0) is values
