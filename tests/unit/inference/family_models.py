"""Small models of every family that loads, of random weights, as PyTorch's modules."""

from typing import Any

import torch
import transformers
from tests.families import FAMILIES, LABELS, VOCABULARY
from tests.parity.agreement import randomize

from bertkit.checkpoints import families
from bertkit.models.bert.architectures import ARCHITECTURES
from bertkit.models.bert.config import BertConfig
from bertkit.nn.packed_ids import PackedIds

HERE = [name for name in FAMILIES if name.partition("-wide")[0] in families.FAMILIES]
HEADS = [
    (family, f"Bert{head}")
    for family in HERE
    for head in FAMILIES[family].heads
    if head != "ForPreTraining" or family == "bert"  # ELECTRA's head of that name isn't read
]
LENGTHS = [5, 1, 33, 60, 2, 17, 60]


def build_family_config(family: str, **changes: Any) -> BertConfig:
    """The config of a family's small models, as transformers would write it."""
    kind = getattr(transformers, f"{FAMILIES[family].prefix}Config")
    return BertConfig.from_dict(kind(**{**FAMILIES[family].sizes, **changes}).to_dict(), family)


def build_family_model(family: str, architecture: str, **changes: Any) -> Any:
    """A model of one of our classes, in evaluation mode."""
    if architecture not in {"BertForQuestionAnswering", "BertModel", "BertForMaskedLM"}:
        changes = {"id2label": LABELS, **changes}
    torch.manual_seed(0)
    model = ARCHITECTURES[architecture].kind(build_family_config(family, **changes)).eval()
    randomize(model, 0.2)
    return model


def draw_ids(family: str, lengths: list[int], seed: int = 0) -> PackedIds:
    """Random sequences, with two segments if the family has several."""
    generator = torch.Generator().manual_seed(seed)
    ids = [torch.randint(7, VOCABULARY, (n,), generator=generator).tolist() for n in lengths]
    if FAMILIES[family].num_segments < 2:
        return PackedIds.from_single(ids)
    return PackedIds.from_sequences(ids, [[0] * (n // 2) + [1] * (n - n // 2) for n in lengths])
