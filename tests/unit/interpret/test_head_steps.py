"""One head's attention step by step is that of `nn/attention.py`, for matrices and for models."""

import pytest
import torch
from tests.closeness import assert_close

from bertkit.base.errors import InputError, SettingsError
from bertkit.interpret.attention_view import AttentionView
from bertkit.interpret.head_steps import attend_given, attend_text
from bertkit.interpret.settings import AttentionSettings, Matrices, ViewSettings
from bertkit.nn.attention import attend_spelled_out
from bertkit.nn.masks import BIDIRECTIONAL, CAUSAL

TEXT = "the cat saw a dog"
RANDOM = {"query": (5, 8), "key": (5, 8), "value": (5, 8)}


def settle(**values):
    return AttentionSettings(**values)


def attend(*, causal=False, **matrices):
    return attend_given(Matrices(**matrices), CAUSAL if causal else BIDIRECTIONAL)


def test_in_the_left_to_right_example_no_token_sees_a_later_one():
    steps = attend(causal=True, tokens=["a", "b", "c"])
    assert steps.tokens == ("a", "b", "c")
    assert steps.weights.triu(1).count_nonzero() == 0
    assert steps.weights[0].tolist() == [1, 0, 0]
    assert steps.gather_numbers()["scores"] == [[1, None, None], [0, 1, None], [3, 2, 0]]
    assert torch.equal(steps.weights[2], attend().weights[2])


@pytest.mark.parametrize("is_causal", [False, True])
def test_given_matrices_give_what_the_paper_equation_gives(is_causal):
    generator = torch.Generator().manual_seed(7)
    parts = {
        name: torch.randn(shape, generator=generator, dtype=torch.float64)
        for name, shape in RANDOM.items()
    }
    given = {name: part.tolist() for name, part in parts.items()}
    steps = attend(**given, causal=is_causal)
    wanted = attend_spelled_out(
        *(part[None, None] for part in parts.values()), None, 0.0, is_causal=is_causal
    )
    assert_close(steps.result, wanted[0, 0])
    assert_close(steps.products, parts["query"] @ parts["key"].T)


def test_without_scaling_the_softmax_is_of_the_products():
    steps = attend(scale=False)
    assert torch.equal(steps.scores, steps.products)
    assert torch.equal(steps.weights, steps.products.softmax(dim=-1))


def test_weights_that_are_left_out_change_nothing():
    steps = attend(x=[[1, 0], [-1, 2.5]])
    assert steps.query.tolist() == [[1, 0], [-1, 2.5]]
    assert torch.equal(steps.query, steps.value)
    assert steps.tokens == ("1", "2")
    halved = attend(x=[[1, 0], [-1, 2.5]], key_weights=[[0.5, 0], [0, 0.5]])
    assert_close(halved.products, steps.products / 2)


def test_keys_may_be_of_another_sequence():
    steps = attend(
        query=[[1, 0]], key=[[1, 0], [0, 1], [0, 0]], value=[[1], [2], [3]], tokens=["q"]
    )
    assert (steps.tokens, steps.attended) == (("q",), ("1", "2", "3"))
    assert steps.weights.shape == (1, 3)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('x = [["1"], ["a"]]', "x.0.0 must be a number"),
        ("x = [[1], [nan]]", "x.1.0 must be a finite number"),
        ("x = [[1e7]]", "x.0.0 must be at most 1000000"),
        ("x = []", "x must have 1 or more values"),
        ("x = [[1, 2], [1]]", "row 2 of x has 1 number, and row 1 has 2"),
        (f"x = [{'[1], ' * 65}]", "x must have 64 or fewer values"),
        ("y = [[1]]", "y is unknown"),
        ("query = [[1]]", "key is missing; give query, key and value, or x"),
        ("key_weights = [[1]]", "key_weights multiplies x, which is missing"),
        ("x = [[1]]\nkey_weights = [[1], [2]]", "key_weights has 2 rows, and the rows of x have 1"),
        ("x = [[1]]\nquery = [[1]]", "query can't be given with x, which it is computed from"),
        ("query = [[1]]\nkey = [[1, 1]]\nvalue = [[1]]", "a query has 1 number and a key 2"),
        ("query = [[1]]\nkey = [[1], [1]]\nvalue = [[1]]", "there are 2 keys and 1 value"),
        ("query = [[1]]\nkey = [[1], [1]]\nvalue = [[1], [1]]", "1 queries and 2 keys"),
        ('x = [[1], [1]]\ntokens = ["a", "b", "c"]', "tokens has 3 names, and there are 2 rows"),
    ],
)
def test_what_does_not_fit_is_told(tmp_path, content, message):
    file = tmp_path / "matrices.toml"
    file.write_text(content)
    with pytest.raises(SettingsError, match=message):
        attend_given(Matrices.read(file), CAUSAL)


def test_a_head_of_a_model_gives_what_the_model_computed(inspected):
    steps = attend_text(inspected, TEXT, None, settle(layer=2, head=1))
    observed = inspected.observe(inspected.read(TEXT)).layers[1]
    assert_close(steps.weights, observed.weights[0])
    assert_close(steps.result, observed.context[0])
    assert_close(steps.products / 2, observed.query[0] @ observed.key[0].T / 2)
    masked = attend_text(inspected, TEXT, None, settle(layer=2, head=1, causal=True))
    parts = (part[None] for part in (observed.query, observed.key, observed.value))
    assert_close(masked.result, attend_spelled_out(*parts, None, 0.0, is_causal=True)[0, 0])
    assert steps.find("cat") == steps.find("3") == 2
    one = steps.gather_numbers(2)
    assert one["weights"] == steps.weights[2].tolist()
    assert one["result"] == steps.result[2].tolist()


def test_a_head_that_is_left_out_is_the_one_that_a_view_opens_on(inspected):
    start = AttentionView.of(inspected, TEXT).start
    steps = attend_text(inspected, TEXT, None, settle())
    assert steps.name == (start.layer, start.head)
    view = AttentionView.of(inspected, TEXT, settings=ViewSettings(layer=2, token="cat"))
    steps = attend_text(inspected, TEXT, None, settle(layer=2, token="cat"))
    assert steps.name == (2, view.start.head)
    assert_close(steps.weights, view.weights(2)[view.start.head - 1])


def test_another_head_or_token_is_told(inspected):
    with pytest.raises(SettingsError, match=r"no head 3\.1"):
        attend_text(inspected, TEXT, None, settle(layer=3))
    with pytest.raises(InputError, match="there is no token 'bird'; the tokens are cat mat it"):
        attend().find("bird")
