import pytest
import torch
import torch.nn.functional as F
from tests.closeness import assert_close

from bertkit.nn import vocabulary_loss as module
from bertkit.nn.vocabulary_loss import vocabulary_loss


@pytest.fixture
def parts():
    generator = torch.Generator().manual_seed(0)
    shapes = ((7, 5), (11, 5), (11,))
    features, weight, bias = (
        torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True)
        for shape in shapes
    )
    return features, weight, bias, torch.tensor([0, 10, 3, 3, 7, 1, 2])


@pytest.mark.parametrize("positions_at_a_time", [1, 3, 7, 128])
def test_loss_hits_and_gradients_are_those_of_all_scores_at_once(
    parts, positions_at_a_time, monkeypatch
):
    monkeypatch.setattr(module, "POSITIONS_AT_A_TIME", positions_at_a_time)
    features, weight, bias, labels = parts
    scores = F.linear(features, weight, bias)
    expected = F.cross_entropy(scores, labels, reduction="sum")
    loss, num_hits = vocabulary_loss(*parts)
    assert_close(loss, expected)
    assert num_hits == (scores.argmax(dim=1) == labels).sum()
    wanted = torch.autograd.grad(expected / 3, (features, weight, bias))
    found = torch.autograd.grad(loss / 3, (features, weight, bias))
    assert_close(found, wanted)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize(("at_a_time", "sizes"), [(3, [3, 3, 1]), (7, [7]), (4096, [7])])
def test_without_gradients_it_is_the_same_and_few_scores_are_held(
    parts, at_a_time, sizes, smoothing, monkeypatch
):
    linear, made = F.linear, []

    def remember(features, weight, bias):
        made.append(len(features))
        return linear(features, weight, bias)

    expected, expected_hits = vocabulary_loss(*parts, smoothing)
    monkeypatch.setattr(module, "SCORED_AT_A_TIME", at_a_time)
    monkeypatch.setattr(module.F, "linear", remember)
    with torch.no_grad():
        loss, num_hits = vocabulary_loss(*parts, smoothing)
    assert_close(loss, expected.detach())
    assert num_hits == expected_hits
    assert made == sizes


def test_the_way_back_can_be_walked_twice(parts):
    features = parts[0]
    loss, _ = vocabulary_loss(*parts)
    (first,) = torch.autograd.grad(loss, features, retain_graph=True)
    (second,) = torch.autograd.grad(loss, features)
    assert torch.equal(first, second)


@pytest.mark.parametrize(("is_learning", "expected"), [(False, 1), (True, 7)])
def test_scores_that_are_all_the_same_hit_the_first_word_and_all_in_learning(
    parts, is_learning, expected
):
    features, weight, bias, _ = parts
    with torch.set_grad_enabled(is_learning):
        _, num_hits = vocabulary_loss(features, weight * 0, bias * 0, torch.arange(7))
    assert num_hits == expected


def test_half_precision_weights_are_scored_in_float32_with_gradients_and_without(parts):
    features, weight, bias, labels = parts
    halves = [each.detach().bfloat16().requires_grad_() for each in (features, weight, bias)]
    loss, _ = vocabulary_loss(*halves, labels)
    expected, _ = vocabulary_loss(*(each.detach().float() for each in halves), labels)
    assert loss.dtype == torch.float32
    assert_close(loss.detach(), expected)
    loss.backward()
    assert halves[1].grad.dtype == torch.bfloat16


def test_no_position_has_no_loss(parts):
    features, weight, bias, labels = parts
    for is_learning in (True, False):
        with torch.set_grad_enabled(is_learning):
            loss, num_hits = vocabulary_loss(features[:0], weight, bias, labels[:0])
        assert (loss.item(), num_hits.item()) == (0.0, 0)
