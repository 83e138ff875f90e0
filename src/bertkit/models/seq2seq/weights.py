"""Loading an encoder-decoder's weights from a checkpoint."""

import torch
from torch import Tensor, nn

from bertkit.base.errors import CheckpointError
from bertkit.base.own_thread import in_own_thread
from bertkit.checkpoints.checkpoint import Checkpoint
from bertkit.checkpoints.seq2seq_names import ENCODER_DECODER, SHARED, UNUSED_PARTS
from bertkit.checkpoints.transfer import import_tensors
from bertkit.nn.embeddings import sinusoids

ARCHITECTURE = "EncoderDecoderModel"
MAX_ROUNDING = 0.01  # for values up to 1, which bfloat16 rounds by up to 0.004


@in_own_thread
def fill_halves(model: nn.Module, checkpoint: Checkpoint) -> None:
    """Load a checkpoint's weights into a model that was built with `without_memory`.

    Args:
        model: the checkpoint must have its shapes.
        checkpoint: a pooler in it is ignored.

    Raises:
        CheckpointError: a tensor is missing, unknown, of the wrong shape or not finite, shared
            embeddings differ, or sinusoidal positions aren't sines and cosines.
    """
    expected = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    tensors = import_tensors(
        checkpoint.tensors,
        expected,
        checkpoint.folder,
        unused_parts=UNUSED_PARTS,
        names=ENCODER_DECODER,
    )
    _check_shared(checkpoint, tensors)
    _check_positions(checkpoint, tensors)
    model.load_state_dict(tensors, assign=True)
    for parameter in model.parameters():
        parameter.requires_grad_(True)


def _check_shared(checkpoint: Checkpoint, tensors: dict[str, Tensor]) -> None:
    """Check that shared embeddings are equal in the file."""
    ours = ("encoder.embeddings.word.weight", "decoder.embeddings.word.weight")
    if checkpoint.config.get("shares_embeddings") and not tensors[ours[0]].equal(tensors[ours[1]]):
        raise CheckpointError(
            f"{checkpoint.folder}: shares_embeddings is true, and {SHARED[0]} and {SHARED[1]}"
            " differ"
        )


def _check_positions(checkpoint: Checkpoint, tensors: dict[str, Tensor]) -> None:
    """Check that sinusoidal positions are sines and cosines in the file.

    Other tools train them like other weights, and replacing trained positions changes the model.
    """
    if checkpoint.config.get("positions") != "sinusoidal":
        return
    for half in ("encoder", "decoder"):
        table = tensors[f"{half}.embeddings.position.weight"]
        waves = sinusoids(*table.shape).to(table.dtype)
        if not torch.allclose(table, waves, rtol=0.0, atol=MAX_ROUNDING):
            raise CheckpointError(
                f"{checkpoint.folder}: positions is sinusoidal, and the {half}'s position"
                " embeddings aren't sines and cosines; if they were trained, set it to learned"
            )
