"""A model of any kind is loaded, reads a text, and is observed."""

import pytest
from tests.families import make_folder
from tests.unit.inference.small import save_run, save_small

from bertkit.base.errors import InputError
from bertkit.interpret.inspected_model import InspectedModel


def test_a_run_is_observed(tmp_path):
    save_run(tmp_path / "run")
    assert InspectedModel.load(tmp_path / "run").name == f"{tmp_path.name}/run"


def test_a_pair_is_numbered_through_but_refused_by_a_model_of_single_texts(inspected, tmp_path):
    encoded = inspected.read("the cats", "a hat .")
    assert encoded.tokens == ["[CLS]", "the", "cat", "##s", "[SEP]", "a", "hat", ".", "[SEP]"]
    assert encoded.encoding.token_type_ids == [0] * 5 + [1] * 4
    assert encoded.words == (-1, 0, 1, 1, -1, 2, 3, 4, -1)
    save_small(tmp_path / "model", type_vocab_size=1)
    with pytest.raises(InputError, match="takes single texts"):
        InspectedModel.load(tmp_path / "model").read("cat", "hat")


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (("",), "the text is empty"),
        (("cat", " \n"), "the second text is empty"),
        (("cat " * 23,), "25 tokens, and the model takes 24"),
    ],
)
def test_texts_without_words_or_too_long_are_refused(inspected, texts, message):
    with pytest.raises(InputError, match=message):
        inspected.read(*texts)


def test_no_text_begins_with_a_piece_that_continues_a_word(tmp_path):
    model = InspectedModel.load(make_folder(tmp_path, "roberta"))
    encoded = model.read("be born", "be")
    assert encoded.find("b") == 1
    assert not any(encoded.tokens[at + 1].startswith("##") for at in (0, encoded.num_first - 1))
