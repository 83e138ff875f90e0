"""A loaded encoder-decoder to inspect: its source text, its target text and its attention.

Loaded through `INSPECTED_MODELS` (`base/wings.py`), where the wing that shows attention is there.
"""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Self

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from bertkit.base.errors import CheckpointError, InputError, SettingsError, pluralize
from bertkit.decoders.attention_views import CROSS, DECODER, ENCODER
from bertkit.decoders.cross_attention import CrossAttention, Memory
from bertkit.decoders.decoding.search import decode
from bertkit.decoders.decoding.sequences import DecodingLimits
from bertkit.decoders.decoding.settings import DecodingSettings
from bertkit.decoders.detokenization import Spacing
from bertkit.decoders.generation.cached_sequences import SourceSequences, find_suppressed_tokens
from bertkit.decoders.generation.seq2seq_generator import limit_written
from bertkit.decoders.generation.settings import (
    REWRITER_FILE,
    Seq2SeqSettingsFile,
    is_seq2seq_model,
    read_seq2seq_file,
)
from bertkit.decoders.model import Decoder, EncoderDecoderModel
from bertkit.inference.engines.torch_engine import cast_whole, check_finite_tensor
from bertkit.inference.loading import find_max_length
from bertkit.inference.settings import PrecisionName
from bertkit.interpret.ablation import HeadName, check_heads, count_layer
from bertkit.interpret.capture import (
    LayerAttention,
    capture_attention,
    capture_with,
    keep_heads,
    widen,
)
from bertkit.interpret.inspected_model import AnyInspected
from bertkit.interpret.observation import (
    EncodedText,
    Observation,
    PredictedWords,
    find_log_probabilities,
    number_words,
)
from bertkit.interpret.settings import ViewSettings
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.encoder import BertEncoder
from bertkit.models.open_model import OpenModel
from bertkit.tokenization.encoding import Encoding
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.device import choose_device


@dataclass(frozen=True)
class InspectedEncoderDecoder(AnyInspected):
    """An encoder-decoder, in evaluation mode, with the tokenizer of both texts.

    Attributes:
        model: the model, on its device.
        saved: the generation settings of a model that bertkit trained; else None.
    """

    name: str
    model: EncoderDecoderModel
    tokenizer: Tokenizer
    saved: Seq2SeqSettingsFile | None = None

    @classmethod
    def _load(cls, opened: OpenModel, device: str, precision: PrecisionName) -> Self:
        place = choose_device(device)
        model = EncoderDecoderModel.from_pretrained(opened).to(place)
        cast_whole(model, precision, place)
        tokenizer, folder = opened.tokenizer, opened.folder
        if max(model.config.decoder_start_token_id, model.config.eos_token_id) >= (
            tokenizer.vocab_size
        ):
            raise CheckpointError(
                f"{folder}: the vocabulary has {tokenizer.vocab_size:,} entries, and the"
                " start or end token isn't among them"
            )
        saved = read_seq2seq_file(folder) if is_seq2seq_model(folder) else None
        return cls(opened.title, model, tokenizer, saved)

    @property
    def device(self) -> torch.device:
        """The model's device."""
        return self.model.encoder.embeddings.word.weight.device

    def read(self, text: str) -> EncodedText:
        """Tokenize a source text.

        Raises:
            InputError: it is empty, or has more tokens than the model was trained to read.
        """
        encoding, config = self.tokenizer.encode(text), self.model.config.encoder
        declared = self.saved.max_source_length if self.saved else None
        most = find_max_length(config, declared)  # with [CLS] and [SEP]
        return self._make_text("the text", text, encoding, len(encoding.ids), most, config)

    def read_target(self, text: str) -> EncodedText:
        """Tokenize a target text as if the model had generated it.

        Raises:
            InputError: it is empty, or has more tokens than the model was trained to generate,
                including the end-of-sequence token.
        """
        encoding = self.tokenizer.encode(text)
        written = self._encode_target(tuple(encoding.ids[1:-1]), is_finished=True)
        whole = replace(written, offsets=encoding.offsets)
        num_written = len(whole.ids) - 1  # the start token doesn't count
        config, most = self.model.config.decoder, self._max_target_length
        return self._make_text("the second text", text, whole, num_written, most, config)

    @torch.inference_mode()
    def write(self, source: EncodedText) -> EncodedText:
        """Generate a target text, with the saved decoding settings, or greedily.

        Raises:
            NonFiniteError: a score is NaN or plus infinity.
        """
        config, saved = self.model.config, self.saved
        decoding = saved.decoding if saved else DecodingSettings()
        limits = DecodingLimits(
            config.eos_token_id,
            limit_written(len(source.tokens), decoding, self._max_target_length),
            find_suppressed_tokens(self.tokenizer, config.eos_token_id, config.decoder.vocab_size),
        )
        sequences = SourceSequences(self.model, source.pack().to(self.device))
        [[found, *_]] = decode(sequences, decoding, limits)
        encoding = self._encode_target(found.tokens, is_finished=found.is_finished)
        spacing = Spacing.from_dict(saved.spacing) if saved else Spacing()
        text = spacing.join([self.tokenizer.vocabulary[id_] for id_ in found.tokens])
        return EncodedText(text, None, encoding, number_words(encoding, self.tokenizer))

    @torch.inference_mode()
    def observe(self, source: EncodedText, written: EncodedText) -> dict[str, Observation]:
        """Run encoder and decoder once and return their hidden states and attention.

        Args:
            source: the source text.
            written: the target text, from `write` or `read_target`.

        Returns:
            The observation of each attention: "cross", "encoder" and "decoder". The decoder's
            input is all tokens of `written` but the last, which is only a target.

        Raises:
            NonFiniteError: hidden states or scores aren't finite.
        """
        model, config = self.model, self.model.config
        one = written.encoding
        cut = Encoding(one.ids[:-1], one.token_type_ids[:-1], one.offsets[:-1], one.tokens[:-1])
        target = replace(written, encoding=cut, words=written.words[:-1])
        read, seen = source.pack().to(self.device), target.pack().to(self.device)
        with (
            capture_attention(model.encoder) as of_encoder,
            capture_attention(model.decoder) as of_decoder,
            capture_cross_attention(model.decoder) as across,
            capture_states(model.encoder) as source_states,
            capture_states(model.decoder) as target_states,
        ):
            scores = model.next_scores(seen, Memory(model.encoder(read), read, seen))
        for states in (source_states, target_states):
            check_finite_tensor(states[-1], f"the hidden states of {self.name}")
        logarithms = find_log_probabilities(self.name, scores, self.tokenizer)
        predicted = PredictedWords(logarithms, tuple(written.encoding.ids[1:]))
        cross, encoder, decoder = (
            [layer.heads() for layer in layers] for layers in (across, of_encoder, of_decoder)
        )
        within_target = Observation(
            target, target_states, decoder, config.decoder, predicted=predicted, part=DECODER
        )
        observations = (
            replace(within_target, layers=cross, attended=source, part=CROSS),
            Observation(source, source_states, encoder, config.encoder, part=ENCODER),
            within_target,
        )
        return {observation.part.name: observation for observation in observations}

    def observe_all(
        self, text: str, pair: str | None, settings: ViewSettings
    ) -> Sequence[Observation]:
        """Observe the three attentions; `pair` is the target text in place of a generated one."""
        if settings.without:
            raise SettingsError(
                f"without is for BERTs, and {self.name} is an encoder-decoder; leave it out"
            )
        chosen, config = settings.attention or CROSS.name, self.model.config
        half = config.encoder if chosen == ENCODER.name else config.decoder
        check_heads([HeadName(count_layer(settings.layer, half) or 1, settings.head or 1)], half)
        source = self.read(text)
        target = self.write(source) if pair is None else self.read_target(pair)
        observed = self.observe(source, target)
        if settings.token is not None:
            observed[chosen].encoded.find(settings.token)
        return list(observed.values())

    def _encode_target(self, tokens: tuple[int, ...], *, is_finished: bool) -> Encoding:
        """Encode tokens between the start token and, if finished, the end-of-sequence token."""
        config = self.model.config
        end = [config.eos_token_id] if is_finished else []
        ids = [config.decoder_start_token_id, *tokens, *end]
        names = [self.tokenizer.vocabulary[id_] for id_ in ids]
        return Encoding(ids, [0] * len(ids), [(0, 0)] * len(ids), names)

    @property
    def _max_target_length(self) -> int:
        """The maximum target length, as in training, including the end-of-sequence token."""
        declared = None if self.saved is None else self.saved.max_target_length
        return find_max_length(self.model.config.decoder, declared)

    def _make_text(
        self,
        name: str,
        text: str,
        encoding: Encoding,
        num_tokens: int,
        max_tokens: int,
        half: BertConfig,
    ) -> EncodedText:
        """Check that a text is neither empty nor longer than in training, and number its words."""
        if num_tokens > max_tokens:
            is_declared = max_tokens < half.max_position_embeddings
            source = f" ({REWRITER_FILE} of its folder)" if is_declared else ""
            raise InputError(
                f"{name} has {pluralize(num_tokens, 'token')}, and the model takes"
                f" {max_tokens:,}{source}; shorten it"
            )
        if len(encoding.ids) <= 2:
            raise InputError(f"{name} is empty; give at least one word")
        return EncodedText(text, None, encoding, number_words(encoding, self.tokenizer))


def capture_cross_attention(decoder: nn.Module) -> AbstractContextManager[list[LayerAttention]]:
    """Capture the attention of target tokens to source tokens.

    Works as `capture_attention`, for passes over a `Memory`.

    Args:
        decoder: the decoder of an encoder-decoder.
    """
    return capture_with(decoder, CrossAttention, _watch)


def _watch(attention: CrossAttention, captured: list[LayerAttention]) -> Iterator[RemovableHandle]:
    """Register hooks around one layer's cross-attention."""
    seen, num_heads = dict[str, Tensor](), attention.num_heads

    def note(_: nn.Module, inputs: tuple[Tensor, Memory], __: Tensor) -> None:
        key, value = seen.pop("key_value").unbind(dim=1)
        memory = inputs[1]
        lengths, attended_lengths = memory.readers.lengths, memory.batch.lengths
        query, context = seen.pop("query"), seen.pop("context")
        captured.append(LayerAttention(query, key, value, context, lengths, attended_lengths))

    yield attention.query.register_forward_hook(keep_heads(seen, "query", num_heads))
    yield attention.key_value.register_forward_hook(keep_heads(seen, "key_value", 2, num_heads))
    yield attention.output.register_forward_pre_hook(keep_heads(seen, "context", num_heads))
    yield attention.register_forward_hook(note)


@contextmanager
def capture_states(half: BertEncoder | Decoder) -> Iterator[list[Float[Tensor, "tokens hidden"]]]:
    """Capture the output of the embeddings and of each layer in a pass inside the `with` block.

    If the model has a final norm, its output counts as the last layer's, as in `hidden_states`.
    """
    captured: list[Tensor] = []

    def see(_: nn.Module, __: tuple[Tensor, ...], tokens: Tensor) -> None:
        captured.append(widen(tokens))

    with ExitStack() as hooks:
        for module in (half.embeddings, *half.layers[:-1], half.final_norm):
            hooks.callback(module.register_forward_hook(see).remove)
        yield captured
