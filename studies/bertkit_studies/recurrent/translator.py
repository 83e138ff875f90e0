"""A recurrent translator with attention to the source.

Source: Bahdanau et al. 2014, "Neural Machine Translation by Jointly Learning to Align and
Translate", section 3 and appendix A. The next word is predicted from the state s_i, as in
equation 4; both languages share one embedding table, to which the output layer is tied.
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from bertkit.nn.dropout import Dropout
from bertkit.nn.head_blocks import length_mask
from bertkit.nn.packing import PackedBatch, pad
from bertkit.nn.vocabulary_loss import vocabulary_loss
from bertkit_studies.recurrent.additive_attention import AdditiveAttention, Annotations
from bertkit_studies.recurrent.config import TranslatorConfig
from bertkit_studies.recurrent.net import SavedNet, count_weights, draw_embeddings
from bertkit_studies.recurrent.packed_nets import Steps, run_net

MAXOUT_PIECES = 2


class AttentionalTranslator(SavedNet):
    """A bidirectional GRU encodes the source; another GRU decodes, with attention to it.

    Args:
        config: the sizes.
    """

    config_kind = TranslatorConfig
    config: TranslatorConfig

    def __init__(self, config: TranslatorConfig) -> None:
        super().__init__(config)
        embedding, hidden = config.embedding_size, config.hidden_size
        self.embeddings = draw_embeddings(config.vocab_size, embedding)
        self.from_start = nn.GRU(embedding, hidden)
        self.from_end = nn.GRU(embedding, hidden)
        self.first_state = nn.Linear(hidden, hidden)
        self.attention = AdditiveAttention(hidden, 2 * hidden, config.attention_size)
        self.writer = nn.GRUCell(embedding + 2 * hidden, hidden)
        self.readout = nn.Linear(embedding + 3 * hidden, MAXOUT_PIECES * embedding)
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))
        self.dropout = Dropout(config.dropout)

    def read(self, source: PackedBatch) -> Annotations:
        """Encode the source."""
        embedded = self.embed(source.input_ids)
        on = run_net(self.from_start, embedded, source.lengths)
        back = run_net(self.from_end, embedded, source.lengths, is_backwards=True)
        mask = length_mask(source.lengths, embedded.device)
        states = pad(self.dropout(torch.cat([on, back], dim=1)), mask)
        return Annotations(states, self.attention.key(states), mask)

    def begin(self, memory: Annotations) -> Float[Tensor, "sequences hidden"]:
        """Return the decoder's initial state, from the backward state at the first source token."""
        back = memory.states[:, 0, self.config.hidden_size :]
        return torch.tanh(self.first_state(back))

    def step(
        self,
        embedded: Float[Tensor, "rows embedding"],
        state: Float[Tensor, "rows hidden"],
        memory: Annotations,
    ) -> tuple[
        Float[Tensor, "rows hidden"], Float[Tensor, "rows twice_hidden"], Float[Tensor, "rows _"]
    ]:
        """Run the decoder for one word of each row.

        Returns:
            The next states, the context vectors, and the attention weights of the source tokens.
        """
        context, shares = self.attention(state, memory)
        return self.writer(torch.cat([embedded, context], dim=1), state), context, shares

    def features(
        self,
        embedded: Float[Tensor, "tokens embedding"],
        states: Float[Tensor, "tokens hidden"],
        contexts: Float[Tensor, "tokens twice_hidden"],
    ) -> Float[Tensor, "tokens embedding"]:
        """Return the vectors to be multiplied with the word embeddings: a maxout layer."""
        pieces = self.readout(torch.cat([embedded, states, contexts], dim=1))
        features: Tensor = self.dropout(pieces.view(len(pieces), -1, MAXOUT_PIECES).amax(dim=-1))
        return features

    def write(
        self, target: PackedBatch, memory: Annotations
    ) -> tuple[Float[Tensor, "tokens embedding"], Float[Tensor, "tokens longest"]]:
        """Decode: return features of the word after each target token, and its attention weights.

        Args:
            target: the decoder's input, one sequence for each source sequence.
            memory: the encoded source.
        """
        steps = Steps.of(target.lengths, target.input_ids.device)
        embedded = self.embed(target.input_ids.index_select(0, steps.order))
        memory = memory.select(steps.rows)
        state, parts = self.begin(memory), []
        for words in torch.split(embedded, steps.batch_sizes.tolist()):
            count = len(words)
            state, context, shares = self.step(words, state[:count], memory.first(count))
            parts.append((state, context, shares))
        states, contexts, all_shares = (torch.cat(column) for column in zip(*parts, strict=True))
        features = self.features(embedded, states, contexts)
        return features.index_select(0, steps.places), all_shares.index_select(0, steps.places)

    def word_scores(
        self, features: Float[Tensor, "rows embedding"]
    ) -> Float[Tensor, "rows vocabulary"]:
        """Return logits of all words from `features`."""
        return F.linear(features, self.embeddings.weight, self.bias)

    def next_scores(
        self, source: PackedBatch, target: PackedBatch
    ) -> Float[Tensor, "tokens vocabulary"]:
        """Return logits of the next word after each target token."""
        return self.word_scores(self.write(target, self.read(source))[0])

    def next_loss(
        self,
        source: PackedBatch,
        target: PackedBatch,
        labels: Int[Tensor, " tokens"],
        smoothing: float = 0.0,
    ) -> tuple[Float[Tensor, ""], Int[Tensor, ""]]:
        """Compute the loss as in `EncoderDecoderModel`."""
        features, _ = self.write(target, self.read(source))
        return vocabulary_loss(features, self.embeddings.weight, self.bias, labels, smoothing)

    @torch.no_grad()
    def align(
        self, source: PackedBatch, target: PackedBatch
    ) -> list[Float[Tensor, "written others"]]:
        """Return, for each pair, the attention weights of each next word over the source tokens."""
        _, shares = self.write(target, self.read(source))
        rows = zip(torch.split(shares, list(target.lengths)), source.lengths, strict=True)
        return [part[:, :length] for part, length in rows]

    def embed(self, input_ids: Int[Tensor, " tokens"]) -> Float[Tensor, "tokens embedding"]:
        """Look up word embeddings, with dropout."""
        embedded: Tensor = self.dropout(self.embeddings(input_ids))
        return embedded

    def count_operations(self, source: PackedBatch, target: PackedBatch) -> float:
        """Count a training step's operations, as in `RecurrentLanguageModel`."""
        config = self.config
        reading = count_weights(self.from_start, self.from_end, self.attention.key)
        writing = count_weights(self.attention.query, self.writer, self.readout)
        writing += self.embeddings.weight.numel()
        pairs = zip(source.lengths, target.lengths, strict=True)
        looks = sum(one * other for one, other in pairs)
        looking = config.attention_size + 2 * config.hidden_size
        beginning = len(source.lengths) * count_weights(self.first_state)
        products = source.num_tokens * reading + target.num_tokens * writing
        return 6.0 * (products + looks * looking + beginning)
