import json

import pytest
import torch
from tests.closeness import close
from tests.unit.inference.small import build_config

from bertkit.base.errors import CheckpointError, InputError
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.encoder import BertModel
from bertkit.models.bert.heads import BertForPreTraining

CONFIG = build_config(
    vocab_size=30, num_hidden_layers=1, max_position_embeddings=12, initializer_range=0.02
)


@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize(
    ("ids", "segments", "mask", "message"),
    [
        (torch.ones(3, dtype=torch.long), None, None, r"\[batch, length\]"),
        (torch.ones(1, 13, dtype=torch.long), None, None, "13 tokens per row"),
        (torch.full((1, 3), 30), None, None, "input_ids must be from 0 to 29"),
        (torch.full((1, 3), -1), None, None, "input_ids must be from 0 to 29"),
        (torch.ones(1, 3, dtype=torch.long), torch.full((1, 3), 2), None, "token_type_ids must"),
        (torch.ones(1, 3, dtype=torch.long), None, torch.ones(1, 2), r"attention_mask is \[1, 2\]"),
        (torch.ones(1, 3, dtype=torch.long), None, torch.zeros(1, 3), "at least one token"),
    ],
)
def test_the_padded_door_checks_what_comes_in(ids, segments, mask, message):
    with pytest.raises(InputError, match=message):
        BertModel(CONFIG)(ids, segments, mask)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
def test_the_saved_config_tells_the_weights_own_type(tmp_path, dtype):
    foreign = {"dtype": "bfloat16", "torch_dtype": "bfloat16"}
    config = BertConfig(**CONFIG.to_dict(), **foreign)
    BertForPreTraining(config).to(dtype).save_pretrained(tmp_path)
    saved = json.loads((tmp_path / "config.json").read_text())
    assert f"torch.{saved['dtype']}" == str(dtype)
    assert "torch_dtype" not in saved


def keep_block_alone(model: BertModel, silenced: str) -> None:
    """Leave the dropout behind one half of the block, and none in the embeddings."""
    model.encoder.embeddings.eval()
    for parameter in model.encoder.layers[0].get_submodule(silenced).parameters():
        torch.nn.init.zeros_(parameter)


PLACES = {
    "attention weights": ("attention_probs_dropout_prob", lambda _: None),
    "embeddings": ("hidden_dropout_prob", lambda model: model.encoder.layers.eval()),
    "attention's output": (
        "hidden_dropout_prob",
        lambda model: keep_block_alone(model, "feed_forward.down"),
    ),
    "feed-forward's output": (
        "hidden_dropout_prob",
        lambda model: keep_block_alone(model, "attention.output"),
    ),
}


@pytest.mark.parametrize("place", PLACES)
def test_each_place_drops_while_training_and_only_then(place):
    name, leave_alone = PLACES[place]
    rates = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, name: 0.5}
    torch.manual_seed(0)
    model = BertModel(CONFIG.model_copy(update={"initializer_range": 0.5, **rates})).train()
    leave_alone(model)
    ids = torch.arange(5, 17)[None]
    first, second = (model(ids).last_hidden_state for _ in range(2))
    assert first != close(second)
    first, second = (model.eval()(ids).last_hidden_state for _ in range(2))
    assert torch.equal(first, second)


def test_broken_weights_are_not_saved(tmp_path):
    model = BertForPreTraining(CONFIG)
    with torch.no_grad():
        model.pooler.dense.bias[0] = float("nan")
    with pytest.raises(CheckpointError, match=r"pooler\.dense\.bias"):
        model.save_pretrained(tmp_path)
    assert not (tmp_path / "model.safetensors").exists()
