"""Write tests/golden/tensorflow: a tiny BERT as google's code saved it, by TensorFlow itself.

python tools/write_tensorflow_golden.py            needs tensorflow, which bertkit doesn't

All variables of pre-training are there with the optimizer's and the counter of steps, random and
not zero. `expected.npz` holds the variables as TensorFlow sees them, an input, and the outputs that
TensorFlow computes from them. Made with TensorFlow 2.21; another version may write other bytes.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

FOLDER = Path(__file__).resolve().parents[1] / "tests" / "golden" / "tensorflow"
PREFIX = "bert_model.ckpt"
SYLLABLES = ["ba", "do", "ki", "lu", "me", "no", "ra"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
HIDDEN_SIZE = 8
INNER_SIZE = 12
NUM_HEADS = 2
NUM_LAYERS = 2
NUM_POSITIONS = 16
NUM_SEGMENTS = 2
VOCAB_SIZE = len(SPECIAL) + len(SYLLABLES) ** 2 + len(SYLLABLES)
CONFIG = {
    "attention_probs_dropout_prob": 0.1,
    "directionality": "bidi",
    "hidden_act": "gelu",
    "hidden_dropout_prob": 0.1,
    "hidden_size": HIDDEN_SIZE,
    "initializer_range": 0.02,
    "intermediate_size": INNER_SIZE,
    "max_position_embeddings": NUM_POSITIONS,
    "num_attention_heads": NUM_HEADS,
    "num_hidden_layers": NUM_LAYERS,
    "type_vocab_size": NUM_SEGMENTS,
    "vocab_size": VOCAB_SIZE,
}
EPSILON = 1e-12
Shapes = dict[str, tuple[int, ...]]
Arrays = dict[str, np.ndarray]
Variables = dict[str, Any]


def main() -> None:
    """Write the folder anew."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    words = [first + second for first in SYLLABLES for second in SYLLABLES]
    vocabulary = [*SPECIAL, *words, *(f"##{syllable}" for syllable in SYLLABLES)]
    (FOLDER / "vocab.txt").write_text("\n".join(vocabulary) + "\n", encoding="utf-8")
    (FOLDER / "bert_config.json").write_text(json.dumps(CONFIG, indent=2) + "\n", encoding="utf-8")
    values = draw_values()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        variables = {
            name: tf.compat.v1.get_variable(name, initializer=value, use_resource=False)
            for name, value in values.items()
        }
        session.run(tf.compat.v1.global_variables_initializer())
        saver = tf.compat.v1.train.Saver()
        saver.save(session, str(FOLDER / PREFIX), write_meta_graph=False)
        (FOLDER / "checkpoint").unlink()
        inputs = draw_inputs()
        outputs = session.run(compute_outputs(variables, inputs))
    groups = {"variables": values, "inputs": inputs, "outputs": outputs}
    arrays = {
        f"{group}/{name}": array for group, named in groups.items() for name, array in named.items()
    }
    np.savez_compressed(FOLDER / "expected.npz", allow_pickle=False, **arrays)


def list_shapes() -> Shapes:
    """The trainable variables of google's run_pretraining.py."""
    hidden, inner = HIDDEN_SIZE, INNER_SIZE
    shapes: Shapes = {
        "bert/embeddings/word_embeddings": (VOCAB_SIZE, hidden),
        "bert/embeddings/token_type_embeddings": (NUM_SEGMENTS, hidden),
        "bert/embeddings/position_embeddings": (NUM_POSITIONS, hidden),
    }
    shapes |= norm("bert/embeddings", hidden)
    for layer in range(NUM_LAYERS):
        scope = f"bert/encoder/layer_{layer}"
        for part in ("self/query", "self/key", "self/value", "output/dense"):
            shapes |= dense(f"{scope}/attention/{part}", hidden, hidden)
        shapes |= norm(f"{scope}/attention/output", hidden)
        shapes |= dense(f"{scope}/intermediate/dense", hidden, inner)
        shapes |= dense(f"{scope}/output/dense", inner, hidden)
        shapes |= norm(f"{scope}/output", hidden)
    shapes |= dense("bert/pooler/dense", hidden, hidden)
    shapes |= dense("cls/predictions/transform/dense", hidden, hidden)
    shapes |= norm("cls/predictions/transform", hidden)
    shapes["cls/predictions/output_bias"] = (VOCAB_SIZE,)
    shapes["cls/seq_relationship/output_weights"] = (2, hidden)
    shapes["cls/seq_relationship/output_bias"] = (2,)
    return shapes


def dense(scope: str, num_inputs: int, num_outputs: int) -> Shapes:
    """A layer of tf.layers.dense."""
    return {f"{scope}/kernel": (num_inputs, num_outputs), f"{scope}/bias": (num_outputs,)}


def norm(scope: str, size: int) -> Shapes:
    """A layer of tf.contrib.layers.layer_norm."""
    return {f"{scope}/LayerNorm/beta": (size,), f"{scope}/LayerNorm/gamma": (size,)}


def draw_values() -> Arrays:
    """Random values of all variables, the optimizer's included."""
    generator = np.random.default_rng(seed=0)
    values = {}
    for name, shape in list_shapes().items():
        for variable in (name, f"{name}/adam_m", f"{name}/adam_v"):
            values[variable] = generator.normal(0.0, 0.5, shape).astype(np.float32)
    return values | {"global_step": np.array(20, dtype=np.int64)}


def draw_inputs() -> Arrays:
    """Two sequences of different tokens and segments."""
    ids = np.array([[2, 5, 9, 4, 3, 17, 60, 3], [2, 33, 3, 8, 8, 41, 59, 3]], dtype=np.int32)
    segments = np.array([[0, 0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1, 1, 1]], dtype=np.int32)
    return {"input_ids": ids, "token_type_ids": segments}


def compute_outputs(variables: Variables, inputs: Arrays) -> dict[str, Any]:
    """BERT as the paper has it, in TensorFlow's operations."""
    length = inputs["input_ids"].shape[1]
    table = variables["bert/embeddings/word_embeddings"]
    hidden = (
        tf.gather(table, inputs["input_ids"])
        + tf.gather(variables["bert/embeddings/token_type_embeddings"], inputs["token_type_ids"])
        + variables["bert/embeddings/position_embeddings"][:length]
    )
    hidden = apply_norm(variables, "bert/embeddings", hidden)
    for layer in range(NUM_LAYERS):
        scope = f"bert/encoder/layer_{layer}"
        context = attend(variables, f"{scope}/attention", hidden)
        hidden = apply_norm(variables, f"{scope}/attention/output", hidden + context)
        inner = apply_dense(variables, f"{scope}/intermediate/dense", hidden)
        outer = apply_dense(variables, f"{scope}/output/dense", tf.nn.gelu(inner))
        hidden = apply_norm(variables, f"{scope}/output", hidden + outer)
    pooled = tf.tanh(apply_dense(variables, "bert/pooler/dense", hidden[:, 0]))
    word = tf.nn.gelu(apply_dense(variables, "cls/predictions/transform/dense", hidden))
    word = apply_norm(variables, "cls/predictions/transform", word)
    scores = tf.matmul(word, table, transpose_b=True) + variables["cls/predictions/output_bias"]
    next_weight = variables["cls/seq_relationship/output_weights"]
    next_scores = tf.matmul(pooled, next_weight, transpose_b=True)
    return {
        "last_hidden_state": hidden,
        "prediction_logits": scores,
        "seq_relationship_logits": next_scores + variables["cls/seq_relationship/output_bias"],
    }


def apply_dense(variables: Variables, scope: str, values: Any) -> Any:
    """Values times the kernel from the right, plus the bias."""
    product = tf.tensordot(values, variables[f"{scope}/kernel"], axes=1)
    return product + variables[f"{scope}/bias"]


def apply_norm(variables: Variables, scope: str, values: Any) -> Any:
    """Layer normalization over the features."""
    mean, variance = tf.nn.moments(values, axes=[-1], keepdims=True)
    gamma, beta = (variables[f"{scope}/LayerNorm/{part}"] for part in ("gamma", "beta"))
    return (values - mean) * tf.math.rsqrt(variance + EPSILON) * gamma + beta


def attend(variables: Variables, scope: str, hidden: Any) -> Any:
    """Attention of all heads, and the layer after it."""
    query, key, value = (
        tf.stack(tf.split(apply_dense(variables, f"{scope}/self/{part}", hidden), NUM_HEADS, -1), 1)
        for part in ("query", "key", "value")
    )
    weights = tf.nn.softmax(tf.matmul(query, key, transpose_b=True) / query.shape[-1] ** 0.5)
    context = tf.concat(tf.unstack(tf.matmul(weights, value), axis=1), axis=-1)
    return apply_dense(variables, f"{scope}/output/dense", context)


if __name__ == "__main__":
    main()
