import pytest
import torch
from tests.unit.inference.small import build_model
from tests.unit.recipes.finetune.small import QUICK, TASK

from bertkit.base.errors import SettingsError
from bertkit.checkpoints.run_folder import list_checkpoints
from bertkit.models.bert.encoder import BertModel
from bertkit.recipes.finetune.layers import freeze_parameters, scale_by_layer
from bertkit.recipes.finetune.run import finetune


def test_each_layer_learns_slower_than_the_one_above_it():
    scale = scale_by_layer(0.5, num_layers=3)
    assert scale("classifier.weight") == scale("pooler.dense.bias") == 1.0
    assert scale("encoder.layers.2.attention.output.weight") == 0.5
    assert scale("encoder.layers.0.feed_forward.up.bias") == 0.125
    assert scale("encoder.embeddings.word.weight") == 0.0625


def test_without_decay_all_learn_alike():
    scale = scale_by_layer(1.0, num_layers=2)
    assert {scale(name) for name, _ in build_model().named_parameters()} == {1.0}


@pytest.mark.parametrize(
    ("what", "frozen"),
    [
        ("none", set()),
        ("embeddings", {"encoder.embeddings"}),
        ("0", {"encoder.embeddings"}),
        ("1", {"encoder.embeddings", "encoder.layers.0"}),
        ("2", {"encoder.embeddings", "encoder.layers.0", "encoder.layers.1"}),
        ("encoder", {"encoder.embeddings", "encoder.layers.0", "encoder.layers.1"}),
    ],
)
def test_what_is_frozen_stays(what, frozen):
    model = build_model()
    number = freeze_parameters(model, what, num_layers=2)
    names = {name for name, each in model.named_parameters() if not each.requires_grad}
    assert names == {
        name
        for name, _ in model.named_parameters()
        if any(name.startswith(f"{part}.") for part in frozen)
    }
    sizes = dict(model.named_parameters())
    assert number == sum(sizes[name].numel() for name in names)


def test_more_layers_than_there_are_are_refused():
    with pytest.raises(SettingsError, match="freeze is 3, and the encoder has 2 layers"):
        freeze_parameters(build_model(), "3", num_layers=2)


def test_frozen_layers_keep_their_bits(sources, tmp_path):
    settings = QUICK.model_copy(
        update={"freeze": "1", "layer_decay": 0.5, "epochs": 1.0, "keep_checkpoints": True}
    )
    finetune(sources, tmp_path / "out", TASK, settings)
    (checkpoint, *_) = list_checkpoints(tmp_path / "out" / "run")
    before = load(sources.model)
    for folder in (tmp_path / "out", checkpoint):
        after = load(folder)
        for name, tensor in after.items():
            is_low = name.startswith(("encoder.embeddings.", "encoder.layers.0."))
            assert torch.equal(tensor, before[name]) == is_low, name


def load(folder: object) -> dict[str, torch.Tensor]:
    tensors = BertModel.from_pretrained(str(folder)).state_dict()
    return {name: tensor for name, tensor in tensors.items() if name.startswith("encoder.")}
