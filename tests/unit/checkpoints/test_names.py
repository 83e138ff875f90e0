"""Foreign names: today's, the old ones, and what they say of the model."""

import pytest

from bertkit.checkpoints.names import BERT, count_parameters


def test_old_and_bare_names_become_todays():
    names = {
        "embeddings.LayerNorm.gamma": 1,
        "bert.pooler.dense.bias": 2,
        "cls.predictions.bias": 3,
    }
    assert BERT.complete(names) == {
        "bert.embeddings.LayerNorm.weight": 1,
        "bert.pooler.dense.bias": 2,
        "cls.predictions.bias": 3,
    }


@pytest.mark.parametrize(
    "prefix", ["module.", "_orig_mod.", "module._orig_mod.", "_orig_mod.module."]
)
def test_the_prefix_of_a_wrapped_model_is_removed_if_all_tensors_have_it(prefix):
    plain = {"embeddings.LayerNorm.gamma": 1, "classifier.bias": 2}
    wrapped = {f"{prefix}{name}": number for name, number in plain.items()}
    assert BERT.complete(wrapped) == BERT.complete(plain)
    assert BERT.complete({**wrapped, "other.bias": 3}).keys() > {f"{prefix}classifier.bias"}
    assert BERT.complete({}) == {}


def test_a_layer_is_made_of_its_parts():
    assert BERT.table().their_names("encoder.layers.3.attention.query_key_value.bias") == tuple(
        f"bert.encoder.layer.3.attention.self.{part}.bias" for part in ("query", "key", "value")
    )
    assert BERT.table().their_names("masked_lm.bias") == ("cls.predictions.bias",)


def test_parts_and_heads_follow_from_names():
    names = ["qa_outputs.bias", "bert.pooler.dense.bias", "x.y", "bert.embeddings.z"]
    assert [BERT.find_part(name) for name in names] == [
        "qa_outputs",
        "pooler",
        "x",
        "encoder.embeddings",
    ]
    assert BERT.list_heads(names) == ("pooler", "qa_outputs")


def test_tied_copies_and_buffers_are_not_counted():
    shapes = {
        "bert.embeddings.word_embeddings.weight": (3, 2),
        "cls.predictions.decoder.weight": (3, 2),
        "bert.embeddings.position_ids": (1, 512),
        "classifier.bias": (4,),
    }
    assert count_parameters(shapes, BERT) == {"encoder.embeddings": 6, "classifier": 4}
