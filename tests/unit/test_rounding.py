"""With `--rounding-error` an encoder differs as on another processor, and tests notice 1e-3."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tests.closeness import assert_close, close
from tests.processors.rounding import round_otherwise

AGREEMENT = (
    "tests/unit/inference/engines/test_engines.py"
    "::test_an_engine_gives_the_layers_that_are_asked_for"
)
CHILD = """
import torch
from bertkit.models.bert.config import BertConfig
from bertkit.models.bert.encoder import BertEncoder
from bertkit.nn.packing import PackedBatch
torch.manual_seed(0)
encoder = BertEncoder(BertConfig.preset("tiny", vocab_size=30)).eval()
print(encoder(PackedBatch.from_single([[2, 5, 3]])).flatten().tolist())
"""


def test_the_error_is_a_share_of_the_largest_value_of_each_token():
    states = torch.randn(50, 24, generator=torch.Generator().manual_seed(0))
    found = round_otherwise(states, 1e-3)
    errors = (found - states).abs() / states.abs().amax(dim=-1, keepdim=True)
    assert 0.9e-3 < float(errors.max()) < 1.001e-3
    assert_close(errors.mean(dim=0), torch.full((24,), 0.5e-3), within=0.2e-3)


def test_a_token_has_the_same_bits_in_any_batch_and_other_bits_another_error():
    states = torch.randn(9, 24, generator=torch.Generator().manual_seed(0))
    found = round_otherwise(states, 1e-3)
    assert torch.equal(round_otherwise(states[4:6], 1e-3), found[4:6])
    near = torch.nextafter(states, states.new_tensor(9.0))
    assert float((round_otherwise(near, 1e-3) - found).abs().max()) > 1e-3


@pytest.mark.parametrize(("share", "code"), [("1e-6", 0), ("1e-3", 1)])
def test_a_comparison_of_two_paths_passes_with_a_small_error_alone(share, code):
    words = ["-m", "pytest", AGREEMENT, "-q", "-p", "no:cacheprovider", "--rounding-error", share]
    root = Path(__file__).parents[2]
    result = subprocess.run([sys.executable, *words], cwd=root, capture_output=True, text=True)
    assert result.returncode == code, result.stdout
    assert ("at most" in result.stdout) == bool(code)


def test_child_processes_have_it_too(monkeypatch):
    found = []
    for share in ("0", "1e-3"):
        monkeypatch.setenv("BERTKIT_TEST_ROUNDING_ERROR", share)
        result = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True)
        found.append(torch.tensor(json.loads(result.stdout)))
    assert_close(found[1], found[0], within=1.001e-3 * float(found[0].abs().max()))
    assert found[1] != close(found[0])
