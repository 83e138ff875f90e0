"""The encoders that bertkit says it loads, built from their published configs, without weights."""

import re
from pathlib import Path

import pytest
import torch
import transformers
from tests.closeness import assert_close
from tests.families import random_batch, randomize
from tests.published_encoders import PUBLISHED

from bertkit.checkpoints.families import FAMILIES, find_family
from bertkit.models.bert.encoder import BertModel

# Authors round, and some count no biases or positions: 278 million of XLM-R are "270M".
LARGEST_ROUNDING = 0.04
every_encoder = pytest.mark.parametrize("encoder", PUBLISHED, ids=lambda encoder: encoder.name)


@every_encoder
def test_counts_are_those_of_transformers_and_of_the_papers(encoder):
    config = transformers.AutoConfig.for_model(**encoder.config)
    with torch.device("meta"):
        model = transformers.AutoModel.from_config(config)
    count = sum(parameter.numel() for parameter in model.parameters())
    assert count == encoder.num_parameters
    published = encoder.published_millions * 1e6
    assert_close(count, published, within=LARGEST_ROUNDING * published)


@pytest.mark.parametrize(
    "encoder",
    [one for one in PUBLISHED if one.family in FAMILIES],
    ids=lambda encoder: encoder.name,
)
def test_ours_have_the_same_tensors(encoder):
    config = find_family(encoder.config).config.from_dict(encoder.config, encoder.name)
    with torch.device("meta"):
        theirs = transformers.AutoModel.from_config(
            transformers.AutoConfig.for_model(**encoder.config)
        )
        ours = BertModel(config, has_pooler=hasattr(theirs, "pooler"))
    assert sum(parameter.numel() for parameter in ours.parameters()) == encoder.num_parameters
    table = config.names.table("BertModel")
    found = {}
    for name, tensor in ours.state_dict().items():
        foreign = table.their_names(name)
        parts = [tuple(part.shape) for part in tensor.chunk(len(foreign))]
        found |= dict(zip(foreign, parts, strict=True))
    expected = {name: tuple(tensor.shape) for name, tensor in theirs.state_dict().items()}
    prefix = config.names.prefix
    assert {name.removeprefix(prefix): shape for name, shape in found.items()} == expected


# The base-sized one of each family, and how far the longest of three sequences goes.
FULL_SIZED = {
    "distilbert/distilbert-base-uncased": 300,
    "google/electra-small-discriminator": 300,
    "FacebookAI/roberta-base": 300,
    "microsoft/mpnet-base": 400,
    "answerdotai/ModernBERT-base": 1500,
}


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "name", [one.name for one in PUBLISHED if one.name in FULL_SIZED and one.family in FAMILIES]
)
def test_hidden_states_agree_at_full_size(name, emptied):
    (encoder,) = [one for one in PUBLISHED if one.name == name]
    theirs = transformers.AutoModel.from_config(
        transformers.AutoConfig.for_model(**encoder.config)
    ).eval()
    randomize(theirs, 0.02)
    theirs.save_pretrained(emptied)
    batch = random_batch(encoder.family, [5, FULL_SIZED[name], 31])
    ours = BertModel.from_pretrained(emptied)
    pad_id = encoder.config["pad_token_id"]
    real = batch["attention_mask"].bool()
    batch["input_ids"] = batch["input_ids"].masked_fill(~real, pad_id)
    with torch.no_grad():
        expected = theirs(**batch).last_hidden_state
        found = ours(batch["input_ids"], batch.get("token_type_ids"), batch["attention_mask"])
    assert_close(found.last_hidden_state[real], expected[real])


ROW = re.compile(r"^\| ([\w-]+) \| (`.*) \| .* \|$", re.MULTILINE)
EXAMPLE = re.compile(r"`([\w./-]+)` \((\d+)\)")


def test_the_readme_has_a_row_for_each_family_and_names_all_of_them():
    page = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    _, _, section = page.partition("## Encoders that load\n")
    rows = ROW.findall(section.partition("\n## ")[0])
    assert {family for family, _ in rows} == {family.title for family in FAMILIES.values()}
    listed = {
        (name, family, int(millions))
        for family, examples in rows
        for name, millions in EXAMPLE.findall(examples)
    }
    expected = {
        (one.name, FAMILIES[one.family].title, round(one.num_parameters / 1e6)) for one in PUBLISHED
    }
    assert listed == expected
