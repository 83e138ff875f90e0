"""Scripts read from a page the numbers that Python put into it, whatever their shape."""

import base64
import json
import re
import subprocess
import zlib
from base64 import b64decode
from importlib import resources

import numpy as np
import pytest
import torch
from tests.closeness import assert_close
from tests.scripts import find_node
from tests.unit.inference.small import save_small

from bertkit.base.errors import SettingsError
from bertkit.interpret.build import (
    build_page,
    name_special,
    pack_residuals,
    pack_vectors,
    pack_weights,
)
from bertkit.interpret.capture import AttentionHeads
from bertkit.interpret.inspected_model import InspectedModel
from bertkit.interpret.opening import Start
from bertkit.interpret.views.view import ViewInputs
from bertkit.tokenization.names import SpecialTokens

SHAPES = [(1, 1, 1), (1, 2, 1), (2, 1, 3), (3, 5, 2), (12, 16, 32), (16, 33, 64), (2, 512, 8)]
READ = """
import { readFileSync, writeFileSync } from "node:fs";
import { decodeBase64, inflate, Vectors, Weights } from "./arrays.js";

for (const [name, { heads, length, weights, residuals, vectors, scales }] of
  Object.entries(JSON.parse(readFileSync("cases.json", "utf8")))) {
  const bytes = await inflate(decodeBase64(weights));
  const attention = new Weights(bytes, length);
  const exact = new Weights(bytes, length, length, await inflate(decodeBase64(residuals)));
  const parts = new Vectors(await inflate(decodeBase64(vectors)), scales, length);
  const read = (row) => Array.from({ length: heads }, (_, head) =>
    Array.from({ length }, (_, token) => [...row(head + 1, token)])).flat(2);
  const each = (head, token) =>
    Array.from({ length }, (_, other) => attention.at(head, token, other));
  const numbers = [
    read((head, token) => attention.row(head, token)), read(each),
    read((head, token) => exact.row(head, token)),
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
    residuals = pack_residuals(layers)
    cases = {
        f"case-{number}": {
            "heads": heads,
            "length": length,
            "weights": pack(weights[f"weights-{number}"]),
            "residuals": pack(residuals[f"residuals-{number}"]),
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
            roots = np.sqrt(layer.weights.numpy().ravel())
            assert_close(np.sqrt(stored), roots, within=0.5 / 255 + 1e-6)
        exact = found[2 * size : 3 * size]
        assert_close(exact, layer.weights.numpy().ravel(), within=5e-5)
        parts = torch.stack([layer.query, layer.key, layer.value]).numpy()
        steps = np.abs(parts).max(axis=(2, 3), keepdims=True) / 127
        assert_close(found[3 * size :].reshape(parts.shape) / steps, parts / steps, within=0.501)


SHARED = ("heads", "model")


@pytest.fixture(scope="module")
def inspected(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "small"
    save_small(folder, max_position_embeddings=256)
    return InspectedModel.load(folder)


def observe(inspected, text="the cat saw the hat .", pair=None):
    return ViewInputs(inspected, inspected.observe(inspected.read(text, pair)))


def test_shared_data_say_what_was_read(inspected):
    page = build_page(observe(inspected, "the 𝒜 cat", "a hat"), SHARED)
    tokens = page.data["tokens"]
    words = " ".join(token["text"] for token in tokens)
    assert words == "[CLS] the [UNK] cat [SEP] a hat [SEP]"
    assert [token["segment"] for token in tokens] == [0] * 5 + [1] * 3
    assert [number for number, token in enumerate(tokens) if token["special"]] == [0, 4, 7]
    places = [(token["start"], token["stop"]) for token in tokens]
    assert places[1:4] == [(0, 3), (4, 6), (7, 10)]  # 𝒜 is two units of a JavaScript string
    assert places[5:7] == [(0, 1), (2, 5)]
    assert page.data["texts"] == ["the 𝒜 cat", "a hat"]
    assert page.data["model"] == {"name": "small", "layers": 2, "heads": 2, "features": 4}
    assert [len(row) for row in page.data["patterns"]] == [2, 2]


def test_vectors_are_left_out_of_long_texts_and_zeros_stay_zeros(inspected):
    inputs = observe(inspected, "cat " * 127)
    assert "vectors-1" not in build_page(inputs, SHARED).arrays
    assert build_page(inputs, SHARED).data["scales"] == []
    assert "vectors-1" in build_page(inputs, SHARED, all_vectors=True).arrays
    assert "vectors-1" in build_page(observe(inspected, "cat " * 126), SHARED).arrays
    layer = observe(inspected).observation.layers[0]
    zeros = AttentionHeads(layer.query * 0, layer.key, layer.value, None)
    arrays, scales = pack_vectors([zeros])
    assert scales[0][0] == [1.0, 1.0]
    assert set(arrays["vectors-1"][: layer.query.numel()]) == {0}


def test_a_page_begins_where_it_is_told_and_needs_a_view(inspected):
    inputs = observe(inspected)
    assert build_page(inputs, SHARED, start=Start()).data["start"] == {
        "layer": 1,
        "heads": [1, 2],
        "head": 1,
        "token": None,
        "side": "from",
        "pairs": "all",
    }
    start = build_page(inputs, SHARED, start=Start(2, 2, 3)).data["start"]
    assert (start["layer"], start["heads"], start["head"], start["token"]) == (2, [2], 2, 3)
    with pytest.raises(SettingsError, match=r"no head 2\.3"):
        build_page(inputs, SHARED, start=Start(2, 3))
    with pytest.raises(SettingsError, match="name at least one view"):
        build_page(observe(inspected), [])


def test_the_page_holds_its_data_and_is_the_same_each_time(inspected):
    inputs = observe(inspected, "the </script><b> cat")
    html = build_page(inputs, SHARED).render()
    assert html == build_page(inputs, SHARED).render()
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', html)
    assert json.loads(data[1])["texts"] == ["the </script><b> cat", None]
    array = re.search(r'id="array-weights-2">(.*?)</script>', html)
    expected = pack_weights(inputs.observation.layers)["weights-2"]
    assert zlib.decompress(b64decode(array[1])) == expected


def test_legends_name_the_special_tokens_of_the_model():
    special = SpecialTokens("<pad>", "<unk>", "<s>", "</s>", "<mask>")
    shown = name_special("[CLS] and [SEP]; write [MASK]", special)
    assert shown == "<s> and </s>; write <mask>"
