"""Encoder-decoders on a GPU, in bf16 by the kernel of variable lengths, beside float32."""

import pytest
import torch
from tests.closeness import close
from tests.unit.nn.test_cuda import CUDA, LENGTHS, assert_near, compute_both, draw
from torch import Tensor

from bertkit.decoders.config import EncoderDecoderConfig
from bertkit.decoders.key_value_cache import KVCache
from bertkit.decoders.model import EncoderDecoderModel
from bertkit.models.bert.config import BertConfig

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
]
OTHER_LENGTHS = (40, 3, 17, 5)  # of what is written, where LENGTHS are of what is read


def build_translator() -> EncoderDecoderModel:
    torch.manual_seed(0)
    config = BertConfig.preset("tiny", vocab_size=1000)
    joined = EncoderDecoderConfig.of(config, start_id=2, end_id=3)
    return EncoderDecoderModel(joined).to(CUDA).eval()


def test_an_encoder_decoder_of_other_lengths_agrees_with_float32():
    model, source, target = build_translator(), draw(LENGTHS), draw(OTHER_LENGTHS)

    def learn() -> Tensor:
        model.zero_grad()
        loss, _ = model.next_loss(source, target, target.input_ids, 0.1)
        loss.backward()
        losses.append(loss.item())
        return torch.cat([one.grad.flatten() for one in model.parameters() if one.grad is not None])

    losses: list[float] = []
    assert_near(*compute_both(learn))
    assert losses[1] == close(losses[0], within=0.01 * losses[0])


@torch.no_grad()
def test_a_token_at_a_time_agrees_with_float32():
    model, source = build_translator(), draw(LENGTHS)
    tokens = torch.randint(5, 1000, (4, len(LENGTHS)), device=CUDA)

    def write() -> Tensor:
        memory = model.read(source)
        growing = KVCache(draw((1,) * len(LENGTHS)))
        growing.input_ids.fill_(2)
        scores = []
        for step in tokens:
            scores.append(model.next_scores(growing, memory).float())
            growing.extend(step)
        return torch.cat(scores)

    assert_near(*compute_both(write))
