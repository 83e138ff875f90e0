"""The encoder-decoder and the left-to-right model: whole, a token at a time, and on the disk."""

import json

import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.closeness import assert_close
from tests.unit.inference.small import build_config

from bertkit.base.errors import CheckpointError, InputError, SettingsError
from bertkit.decoders.config import EncoderDecoderConfig
from bertkit.decoders.key_value_cache import KVCache
from bertkit.decoders.model import EncoderDecoderModel
from bertkit.models.bert.heads import BertForPreTraining, BertLMHeadModel
from bertkit.nn.packing import PackedBatch

SIZES = {
    "vocab_size": 30,
    "hidden_size": 16,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "max_position_embeddings": 80,
    "initializer_range": 0.3,
}
SOURCES = [[2, 7, 8, 9, 3], [2, 11, 3], [2, 5, 6, 7, 8, 9, 10, 11, 12, 3]]
TARGETS = [[2, 14, 15, 9], [2, 16, 17, 18], [2, 22, 5, 6]]
JOINS = [
    {},
    {"normalizes_first": True},
    {"shares_embeddings": True, "positions": "sinusoidal"},
]


def build(**joined):
    torch.manual_seed(1)
    config = EncoderDecoderConfig.of(build_config(**SIZES), start_id=2, end_id=3, **joined)
    return EncoderDecoderModel(config).double().eval()


def build_causal():
    torch.manual_seed(1)
    return BertLMHeadModel(build_config(**SIZES, is_decoder=True)).double().eval()


@pytest.mark.parametrize("joined", JOINS, ids=str)
def test_a_token_at_a_time_gives_what_the_whole_gives(joined):
    model = build(**joined)
    expected = [
        model(torch.tensor([one]), torch.tensor([two]))[0]
        for one, two in zip(SOURCES, TARGETS, strict=True)
    ]
    memory = model.read(PackedBatch.from_single(SOURCES))
    growing = KVCache(PackedBatch.from_single([row[:1] for row in TARGETS]))
    steps = [model.next_scores(growing, memory)]
    for place in range(1, 4):
        growing.extend(torch.tensor([row[place] for row in TARGETS]))
        steps.append(model.next_scores(growing, memory))
    assert_close(torch.stack(steps, dim=1), torch.stack(expected))


def test_prompts_of_several_lengths_grow_beyond_their_first_room():
    model = build_causal()
    prompts = [[2, 7], [2, 8, 9, 10, 11], [2]]
    rows = [list(row) for row in prompts]
    growing = KVCache(PackedBatch.from_single(prompts))
    with torch.no_grad():
        model.next_scores(growing)
        generator = torch.Generator().manual_seed(3)
        for _ in range(70):
            words = torch.randint(5, 30, (3,), generator=generator)
            for row, word in zip(rows, words.tolist(), strict=True):
                row.append(word)
            growing.extend(words)
            found = model.next_scores(growing)
        for row, scores in zip(rows, found, strict=True):
            expected = model.next_scores(PackedBatch.from_single([row]))[-1]
            assert_close(scores, expected)


@pytest.mark.parametrize("mode", ["training", "no gradient", "inference"])
def test_every_kernel_reads_left_to_right(mode):
    model = build_causal()
    rows = [[2, 7, 8, 9, 3], [2, 4], [2, 5, 6, 7]]
    expected = torch.cat([model.next_scores(PackedBatch.from_single([row])) for row in rows])
    batch = PackedBatch.from_single(rows)
    if mode == "training":
        for module in model.modules():
            if hasattr(module, "dropout_rate"):
                module.dropout_rate = 1e-9  # the kernel with dropout, and next to no dropout
        model.encoder.train()
        model.encoder.embeddings.dropout_rate = 0.0
        for layer in model.encoder.layers:
            layer.dropout_rates = dict.fromkeys(layer.dropout_rates, 0.0)
        found = model.next_scores(batch)
    else:  # the fused kernel over padded rows, or over runs
        with torch.no_grad() if mode == "no gradient" else torch.inference_mode():
            found = model.next_scores(batch)
    assert_close(found, expected)


@pytest.mark.parametrize("joined", JOINS, ids=str)
def test_states_by_layer_and_summaries_are_those_of_the_whole(joined):
    encoder, batch = build(**joined).encoder, PackedBatch.from_single(SOURCES)
    expected = encoder(batch)
    assert_close(list(encoder.hidden_states(batch))[-1], expected)
    assert_close(encoder.summary_states(batch), expected[batch.first_tokens])


@pytest.mark.parametrize("joined", JOINS, ids=str)
def test_a_saved_model_comes_back(joined, tmp_path):
    model = build(**joined)
    model.save_pretrained(tmp_path)
    again = EncoderDecoderModel.from_pretrained(tmp_path)
    assert again.config.to_dict().items() >= model.config.to_dict().items()
    source, target = torch.tensor([SOURCES[0]]), torch.tensor([TARGETS[0]])
    assert_close(again(source, target).double(), model(source, target), within=1e-4)
    shares = again.decoder.embeddings.word is again.encoder.embeddings.word
    assert shares == bool(joined.get("shares_embeddings"))
    is_fixed = not again.decoder.embeddings.position.weight.requires_grad
    assert is_fixed == (joined.get("positions") == "sinusoidal")


def test_weights_of_a_model_in_data_parallel_are_read(tmp_path):
    model = build()
    model.save_pretrained(tmp_path)
    path = tmp_path / "model.safetensors"
    save_file({f"module.{name}": each for name, each in load_file(path).items()}, path)
    again = EncoderDecoderModel.from_pretrained(tmp_path).state_dict()
    assert all(torch.equal(again[name], each.float()) for name, each in model.state_dict().items())


def test_the_old_name_of_dtype_is_not_written_again(tmp_path):
    model = build(torch_dtype="bfloat16")
    model.save_pretrained(tmp_path)
    saved = json.loads((tmp_path / "config.json").read_text())
    assert saved["dtype"] == "float64"
    assert "torch_dtype" not in saved


def test_a_key_that_is_only_kept_must_be_one_that_can_be_written_back():
    nested: list[object] = []
    for _ in range(300):
        nested = [nested]
    with pytest.raises(CheckpointError, match="depth"):
        EncoderDecoderConfig.from_dict({**build().config.to_dict(), "x": nested}, "folder")


@pytest.mark.parametrize("num_written", [1, 3])
@pytest.mark.usefixtures("unchecked_shapes")
def test_as_many_rows_are_written_as_are_read(num_written):
    read, written = torch.tensor([SOURCES[0]] * 2), torch.tensor([TARGETS[0]] * num_written)
    with pytest.raises(InputError, match=f"decoder_input_ids has {num_written} rows"):
        build()(read, written)


@pytest.mark.parametrize("half", ["encoder", "decoder"])
def test_fixed_positions_that_were_trained_are_refused(half, tmp_path):
    model = build(positions="sinusoidal")
    with torch.no_grad():
        model.get_submodule(half).embeddings.position.weight[3, 5] += 0.1
    model.save_pretrained(tmp_path)
    with pytest.raises(CheckpointError, match=f"the {half}'s position embeddings aren't sines"):
        EncoderDecoderModel.from_pretrained(tmp_path)


def test_fixed_positions_may_be_rounded(tmp_path):
    build(positions="sinusoidal").bfloat16().save_pretrained(tmp_path)
    again = EncoderDecoderModel.from_pretrained(tmp_path).decoder.embeddings.position.weight
    assert torch.equal(
        again, build(positions="sinusoidal").decoder.embeddings.position.weight.float()
    )


def test_a_warm_start_takes_everything_that_a_bert_has():
    torch.manual_seed(5)
    parent = BertForPreTraining(build_config(**SIZES)).double()
    model = build()
    before = model.decoder.layers[0].cross_attention.query.weight.clone()
    model.warm_start(parent)
    for half in (model.encoder, model.decoder):
        found = half.state_dict()
        for name, weight in parent.encoder.state_dict().items():
            assert torch.equal(found[name], weight), name
    assert_close(model.decoder.layers[0].cross_attention.query.weight, before)
    assert_close(model.masked_lm.dense.weight, parent.masked_lm.dense.weight)


def test_a_warm_start_leaves_positions_that_are_not_learned(tmp_path):
    model = build(positions="sinusoidal").float()
    model.warm_start(BertForPreTraining(build_config(**SIZES)))
    model.save_pretrained(tmp_path)
    again = EncoderDecoderModel.from_pretrained(tmp_path)
    source, target = torch.tensor([SOURCES[0]]), torch.tensor([TARGETS[0]])
    assert_close(again(source, target), model(source, target))


def test_a_left_to_right_model_needs_its_direction():
    with pytest.raises(SettingsError, match="is_decoder"):
        BertLMHeadModel(build_config(**SIZES))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"decoder_start_token_id": 30}, "decoder_start_token_id"),
        ({"positions": "rotary"}, "positions"),
        (
            {
                "shares_embeddings": True,
                "decoder": build_config(**{**SIZES, "vocab_size": 31}, is_decoder=True),
            },
            "same vocab_size",
        ),
        ({"decoder": build_config(**{**SIZES, "hidden_size": 20}, is_decoder=True)}, "hidden_size"),
        ({"decoder": build_config(**SIZES)}, "is_decoder"),
        ({"encoder": None}, "encoder"),
        ({"shares_embeddings": "no"}, "shares_embeddings"),
        ({"normalizes_first": 1}, "normalizes_first"),
        ({"eos_token_id": True}, "eos_token_id"),
        ({"decoder_start_token_id": "2"}, "decoder_start_token_id"),
        ({"decoder": [1]}, "decoder"),
    ],
)
def test_halves_that_do_not_fit_are_refused(changes, message):
    config = build_config(**SIZES)
    values = {
        "encoder": config,
        "decoder": build_config(**SIZES, is_decoder=True),
        "decoder_start_token_id": 2,
        "eos_token_id": 3,
    }
    with pytest.raises(SettingsError, match=message):
        EncoderDecoderConfig(**{**values, **changes})


def test_a_half_of_another_family_is_named():
    halves = {"model_type": "encoder-decoder", "encoder": {"model_type": "bert"}}
    with pytest.raises(CheckpointError, match="m/ is GPT-2, which bertkit"):
        EncoderDecoderConfig.from_dict({**halves, "decoder": {"model_type": "gpt2"}}, "m/")
    with pytest.raises(CheckpointError, match=r"m/ is DistilBERT, and the halves .* are BERTs"):
        EncoderDecoderConfig.from_dict({**halves, "decoder": {"model_type": "distilbert"}}, "m/")
