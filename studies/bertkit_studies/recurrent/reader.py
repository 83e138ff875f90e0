"""Word embeddings, and the recurrent networks that read them forward and backward."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from bertkit.nn.dropout import Dropout
from bertkit.nn.packing import PackedBatch
from bertkit_studies.recurrent.config import ReaderConfig
from bertkit_studies.recurrent.net import count_weights, draw_embeddings
from bertkit_studies.recurrent.packed_nets import run_net

CELLS = {"lstm": nn.LSTM, "gru": nn.GRU}


class Reader(nn.Module):
    """A forward and a backward network, independent of each other so that each can predict words.

    Args:
        config: the sizes; if it isn't bidirectional, `from_end` is None.
    """

    def __init__(self, config: ReaderConfig) -> None:
        super().__init__()
        self.embeddings = draw_embeddings(config.vocab_size, config.embedding_size)
        self.from_start = _build_net(config)
        self.from_end = _build_net(config) if config.is_bidirectional else None
        self.dropout = Dropout(config.dropout)

    @property
    def num_features(self) -> int:
        """Features of each token in the output of `forward`."""
        directions = 1 if self.from_end is None else 2
        return directions * self.from_start.hidden_size

    def read_forward(self, batch: PackedBatch) -> Float[Tensor, "tokens hidden"]:
        """Return the forward network's state after each token."""
        return self._read(self.from_start, batch, is_backwards=False)

    def read_backward(self, batch: PackedBatch) -> Float[Tensor, "tokens hidden"]:
        """Return the backward network's state after each token."""
        assert self.from_end is not None, "a net of one direction reads from the start"
        return self._read(self.from_end, batch, is_backwards=True)

    def forward(self, batch: PackedBatch) -> Float[Tensor, "tokens features"]:
        """Return the states of both directions, concatenated."""
        if self.from_end is None:
            return self.read_forward(batch)
        return torch.cat([self.read_forward(batch), self.read_backward(batch)], dim=1)

    def _read(
        self, net: nn.LSTM | nn.GRU, batch: PackedBatch, *, is_backwards: bool
    ) -> Float[Tensor, "tokens hidden"]:
        embedded = self.dropout(self.embeddings(batch.input_ids))
        states: Tensor = self.dropout(
            run_net(net, embedded, batch.lengths, is_backwards=is_backwards)
        )
        return states

    def count_weights(self) -> int:
        """Count the weights that each token is multiplied with."""
        nets = (self.from_start, self.from_end)
        return count_weights(*(net for net in nets if net is not None))


def _build_net(config: ReaderConfig) -> nn.LSTM | nn.GRU:
    """Build one direction, with dropout between its layers."""
    rate = config.dropout if config.num_layers > 1 else 0.0
    sizes = (config.embedding_size, config.hidden_size, config.num_layers)
    net: nn.LSTM | nn.GRU = CELLS[config.cell](*sizes, dropout=rate)
    if isinstance(net, nn.LSTM):
        _open_forget_gates(net)
    return net


def _open_forget_gates(net: nn.LSTM) -> None:
    """Initialize forget gate biases to 1; with torch's, near 0, each step halves the cell state.

    Source: Jozefowicz et al. 2015, "An Empirical Exploration of Recurrent Network Architectures",
    abstract.
    """
    with torch.no_grad():
        for name, bias in net.named_parameters():
            if name.startswith("bias"):  # bias_ih and bias_hh, which torch adds up
                forget = bias[net.hidden_size : 2 * net.hidden_size]
                forget.fill_(1.0 if name.startswith("bias_ih") else 0.0)
