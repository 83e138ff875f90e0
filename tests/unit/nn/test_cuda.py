"""The CUDA path: variable-length flash attention in bf16. Runs only where there is a GPU."""

import pytest
import torch

from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.heads import BertForPreTraining
from bertkit.nn.packing import PackedBatch

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
]
LENGTHS = (1, 7, 128, 33)


def build(**sizes: int) -> tuple[BertForPreTraining, PackedBatch]:
    torch.manual_seed(0)
    config = BertConfig.preset("tiny", vocab_size=1000, hidden_dropout_prob=0.0, **sizes)
    model = BertForPreTraining(config).cuda().eval()
    ids = [torch.randint(5, 1000, (length,)).tolist() for length in LENGTHS]
    batch = PackedBatch.from_sequences(ids, [[0] * length for length in LENGTHS])
    return model, batch.to(torch.device("cuda"))


@pytest.mark.parametrize("num_features", [64, 26])  # of a head; the kernel takes multiples of 8
def test_half_precision_agrees_with_float32(num_features):
    model, batch = build(hidden_size=2 * num_features)
    with torch.no_grad():
        exact = model.score_words(model.encoder(batch))
        with torch.autocast("cuda", dtype=torch.bfloat16):
            fast = model.score_words(model.encoder(batch))
    assert float((exact - fast).abs().max()) < 0.05 * float(exact.abs().max())


def test_gradients_are_finite_in_bf16():
    model, batch = build()
    model.train()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        places = batch.first_tokens.long()
        loss, _, relations = model.masked_loss_and_relations(batch, places, batch.input_ids[places])
    (loss + relations.float().square().mean()).backward()
    assert all(
        bool(torch.isfinite(parameter.grad).all())
        for parameter in model.parameters()
        if parameter.grad is not None
    )
