"""Scripts read from a page the numbers that Python put into it, whatever their shape."""

import base64
import json
import subprocess
import zlib
from importlib import resources

import numpy as np
import pytest
import torch
from tests.scripts import find_node

from bertkit.interpret.capture import AttentionHeads
from bertkit.interpret.page.arrays import pack_vectors, pack_weights

SHAPES = [(1, 1, 1), (1, 2, 1), (2, 1, 3), (3, 5, 2), (12, 16, 32), (16, 33, 64), (2, 512, 8)]
READ = """
import { readFileSync, writeFileSync } from "node:fs";
import { decodeBase64, inflate, Vectors, Weights } from "./arrays.js";

for (const [name, { heads, length, weights, vectors, scales }] of
  Object.entries(JSON.parse(readFileSync("cases.json", "utf8")))) {
  const attention = new Weights(await inflate(decodeBase64(weights)), length);
  const parts = new Vectors(await inflate(decodeBase64(vectors)), scales, length);
  const read = (row) => Array.from({ length: heads }, (_, head) =>
    Array.from({ length }, (_, token) => [...row(head + 1, token)])).flat(2);
  const each = (head, token) =>
    Array.from({ length }, (_, other) => attention.at(head, token, other));
  const numbers = [
    read((head, token) => attention.row(head, token)), read(each),
    ...["query", "key", "value"].map((part) => read((head, token) => parts[part](head, token))),
  ];
  writeFileSync(name, Float32Array.from(numbers.flat()));
}
"""


def build_heads(heads, length, features):
    """Attention of a layer with random numbers of very different sizes."""
    generator = torch.Generator().manual_seed(heads * length)

    def numbers(*shape):
        exponents = torch.randint(-9, 2, (shape[0], 1, 1), generator=generator)
        return torch.randn(shape, generator=generator) * 2.0**exponents

    return AttentionHeads(*(numbers(heads, length, features) for _ in range(3)), context=None)


def pack(content):
    return base64.b64encode(zlib.compress(content)).decode()


def test_scripts_read_what_python_wrote(tmp_path):
    node = find_node()
    if node is None:
        pytest.skip("needs Node: install Playwright, which brings one, or the package nodejs")
    layers = [build_heads(*shape) for shape in SHAPES]
    (vectors, scales), weights = pack_vectors(layers), pack_weights(layers)
    cases = {
        f"case-{number}": {
            "heads": heads,
            "length": length,
            "weights": pack(weights[f"weights-{number}"]),
            "vectors": pack(vectors[f"vectors-{number}"]),
            "scales": scales[number - 1],
        }
        for number, (heads, length, _) in enumerate(SHAPES, 1)
    }
    source = resources.files("bertkit.reports").joinpath("page", "arrays.js")
    (tmp_path / "arrays.js").write_text(source.read_text())
    (tmp_path / "cases.json").write_text(json.dumps(cases))
    (tmp_path / "read.mjs").write_text(READ)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    subprocess.run([node, "read.mjs"], cwd=tmp_path, check=True)
    for name, layer in zip(cases, layers, strict=True):
        found = np.fromfile(tmp_path / name, np.float32)
        size = layer.weights.numel()
        for stored in (found[:size], found[size : 2 * size]):
            gap = np.sqrt(stored) - np.sqrt(layer.weights.numpy().ravel())
            assert np.abs(gap).max() <= 0.5 / 255 + 1e-6
        parts = torch.stack([layer.query, layer.key, layer.value]).numpy()
        steps = np.abs(parts).max(axis=(2, 3), keepdims=True) / 127
        assert (np.abs(found[2 * size :].reshape(parts.shape) - parts) <= 0.501 * steps).all()
