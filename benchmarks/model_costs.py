"""What training a model costs a GPU in memory and in communication, computed from its sizes."""

from dataclasses import dataclass
from functools import cache

import torch

from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.heads import BertForMaskedLM
from bertkit.recipes.pretrain.settings import RECIPES

MASK_RATE = float(RECIPES["modern"]["mask_rate"])
# What nobody measured: operations per second of a GPU in training, tokens that it has at a time,
# one hop of a message between two CPUs, and opening a file on a shared file system.
ASSUMED = {"operations": 2e14, "tokens": 16_384, "hop_seconds": 3e-5, "open_seconds": 1e-3}


@dataclass(frozen=True)
class Sizes:
    """The sizes of a model that memory and communication depend on."""

    config: BertConfig
    num_parameters: int
    num_block_parameters: int  # of the Transformer blocks
    num_matrix_parameters: int  # of those, in matrices, which Muon updates

    @property
    def block_bytes_per_token(self) -> int:
        """What one block keeps of a token for the backward pass, on a GPU in bf16.

        Inputs of the four products, queries, keys and values, and what GELU gets, in bf16; what
        both layer norms get in float32, with a mean and a deviation; a number per head.
        """
        hidden, inner = self.config.hidden_size, self.config.intermediate_size
        in_bf16 = hidden + 3 * hidden + hidden + hidden + inner + inner
        in_float32 = 2 * (hidden + 2) + self.config.num_attention_heads
        return 2 * in_bf16 + 4 * in_float32

    @property
    def bytes_per_token(self) -> float:
        """The same of a model, with embeddings, and with the logits of masked words at their peak.

        At the peak there are the logarithms of all words' probabilities and their gradient in
        float32, and the latter in bf16.
        """
        embeddings = 4 * (self.config.hidden_size + 2) + 3 * 8
        blocks = self.config.num_hidden_layers * self.block_bytes_per_token
        return blocks + embeddings + self.words_bytes_per_token

    @property
    def recomputed_bytes_per_token(self) -> float:
        """The same with --checkpoint-activations: the inputs of blocks, and all of one block."""
        saved = self.block_bytes_per_token - 4 * self.config.hidden_size
        return self.bytes_per_token - (self.config.num_hidden_layers - 1) * saved

    @property
    def words_bytes_per_token(self) -> float:
        """What the masked words need at the peak, for each token, masked or not."""
        return MASK_RATE * (10.0 * self.config.vocab_size + 14.0 * self.config.hidden_size)

    @property
    def bf16_bytes(self) -> int:
        """Copies of the blocks' matrices and of the word embeddings that products use."""
        words = self.config.vocab_size * self.config.hidden_size
        return 2 * (self.num_matrix_parameters + words)

    def state_bytes(self, optimizer: str) -> int:
        saved = self.num_matrix_parameters if optimizer == "muon" else 0
        return 4 * (2 * self.num_parameters - saved)

    def operations_per_token(self, length: int) -> float:
        """Count the operations of a training step, forward and backward."""
        hidden = self.config.hidden_size
        words = 6.0 * MASK_RATE * hidden * (hidden + self.config.vocab_size)
        attention = 12.0 * self.config.num_hidden_layers * length * hidden
        return 6.0 * self.num_matrix_parameters + attention + words

    def tokens_per_second(self, length: int) -> float:
        return ASSUMED["operations"] / self.operations_per_token(length)


@cache
def find_sizes(name: str) -> Sizes:
    config = BertConfig.preset(name)
    with torch.device("meta"):
        model = BertForMaskedLM(config)
    blocks = list(model.encoder.layers.parameters())
    return Sizes(
        config,
        num_parameters=sum(each.numel() for each in model.parameters()),
        num_block_parameters=sum(each.numel() for each in blocks),
        num_matrix_parameters=sum(each.numel() for each in blocks if each.dim() > 1),
    )


def list_fixed_bytes(sizes: Sizes, optimizer: str, num_gpus: int, *, is_divided: bool) -> list[int]:
    """Return the bytes of weights, gradients and optimizer on the first GPU.

    Divided, it has its share of each, and beside it the whole model that is evaluated and saved,
    which the others don't have, two blocks with their gradients, and the embeddings, whose weights
    stay whole in a step.
    """
    weights, state = 4 * sizes.num_parameters, sizes.state_bytes(optimizer)
    if not is_divided:
        return [weights + sizes.bf16_bytes, weights, state]
    block = 4 * sizes.num_block_parameters // sizes.config.num_hidden_layers
    rest = weights - 4 * sizes.num_block_parameters
    whole = weights + 2 * block + rest + sizes.bf16_bytes
    return [whole + weights // num_gpus, 2 * block + rest + weights // num_gpus, state // num_gpus]


def compute_on_cpu(sizes: Sizes) -> int:
    """Return a block's bytes per token on a CPU, which has the contexts of heads twice."""
    return sizes.block_bytes_per_token + 2 * sizes.config.hidden_size


def count_sent(sizes: Sizes, num_gpus: int, *, is_divided: bool) -> float:
    """Return the bytes that a GPU sends in a step with Muon, as rings do it.

    DDP sums gradients in float32. Divided, the weights of blocks are gathered twice and the other
    ones once, the sums of gradients are divided, and what Muon makes orthogonal is gathered. What
    it made is summed in bf16.
    """
    orthogonal = 2 * 2 * sizes.num_matrix_parameters
    if is_divided:
        gathered = sizes.num_parameters + sizes.num_block_parameters + sizes.num_matrix_parameters
        sent = 4 * (gathered + sizes.num_parameters)
    else:
        sent = 2 * 4 * sizes.num_parameters
    return (num_gpus - 1) / num_gpus * (sent + orthogonal)
