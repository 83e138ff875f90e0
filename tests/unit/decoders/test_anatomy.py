"""What `bertkit inspect` expects of an encoder-decoder is what the model has."""

import pytest
from tests.unit.decoders.small_encoder_decoder import save_encoder_decoder

from bertkit.decoders.anatomy import ARCHITECTURE, EncoderDecoder
from bertkit.decoders.model import EncoderDecoderModel
from bertkit.models.open_model import OpenModel


@pytest.mark.parametrize("joined", [{}, {"normalizes_first": True}, {"positions": "sinusoidal"}])
def test_shapes_are_those_of_the_model(joined, tmp_path):
    save_encoder_decoder(tmp_path, **joined)
    anatomy = EncoderDecoder(OpenModel.open(tmp_path))
    model = EncoderDecoderModel.from_pretrained(tmp_path)
    assert anatomy.expected(anatomy.read_config(), ARCHITECTURE) == {
        name: tuple(tensor.shape) for name, tensor in model.state_dict().items()
    }
    assert type(model).__name__ == ARCHITECTURE
