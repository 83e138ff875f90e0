"""LoRA beside PEFT: adapters of either are loaded by the other, and give equal outputs."""

import re
from pathlib import Path
from typing import Any

import peft
import pytest
import torch
import transformers
from sentence_transformers import SentenceTransformer
from tests.closeness import assert_close
from tests.exhaustive import mark_all_but
from tests.families import FAMILIES, class_name, make_folder, random_batch
from tests.parity.agreement import pad_sequences
from tests.parity.test_finetune import CASES, MULTIPLIED, SETTINGS, check_elsewhere, train
from tests.unit.recipes.finetune.small import save_model
from torch import Tensor, nn

from bertkit.checkpoints.formats import open_checkpoint
from bertkit.checkpoints.peft import AdapterOrigin, identify_base
from bertkit.checkpoints.sentence_modules import Pooling
from bertkit.checkpoints.sentence_transformers import SentenceModel, write_sentence_model
from bertkit.inference.embeddings.embedder import Embedder
from bertkit.inference.predictor import EncodedExamples, Predictor
from bertkit.models.bert.adapter import adapt
from bertkit.models.bert.encoder import BertModel
from bertkit.models.bert.fine_tuning import (
    BertForSequenceClassification,
    BertForTokenClassification,
)
from bertkit.models.bert.pretrained import PretrainedBert
from bertkit.recipes.finetune.run import Sources, finetune
from bertkit.tasks.table import TASKS

pytestmark = pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing`:FutureWarning")
LORA = SETTINGS.model_copy(update={"lora": 2})
IDS = torch.tensor([[2, 5, 6, 7, 8, 3], [2, 9, 8, 7, 6, 3]])
PLAIN = ("classify", "regress", "tag", "answer", "choose")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base") / "model"
    save_model(folder)
    return folder


@pytest.mark.parametrize("name", mark_all_but(["classify", "choose"], PLAIN))
def test_our_adapter_has_equal_scores_in_peft(
    name: str, base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = train(name, base, tmp_path, monkeypatch, LORA)
    case = CASES[name]
    predictor = Predictor.load(output, engine="torch", device="cpu", precision="fp32")
    examples = [predictor.task.make_example(value, "here") for value in case.inputs]
    encoded = predictor.task.encode(examples, predictor.loaded.tokenizer)
    config = transformers.AutoConfig.from_pretrained(output)
    whole = getattr(transformers, case.model).from_pretrained(base, num_labels=config.num_labels)
    model = peft.PeftModel.from_pretrained(whole, output / "adapter").eval()
    for one, ours in zip(
        encoded, predictor.compute_window(EncodedExamples([], encoded)), strict=True
    ):
        tensors = pad_sequences(one.sequences)
        if case.is_choice:
            tensors = {key: tensor[None] for key, tensor in tensors.items()}
        with torch.no_grad():
            # PEFT's own class for answers drops token_type_ids.
            theirs = case.scores(model.get_base_model()(**tensors))
        if predictor.task.scored == "token":
            lengths = [len(sequence.ids) for sequence in one.sequences]
            theirs = torch.cat([each[:n] for each, n in zip(theirs, lengths, strict=True)])
        assert_close(torch.from_numpy(ours), theirs, floor=MULTIPLIED)


def test_our_adapter_of_a_sentence_encoder_is_loaded_by_peft_and_sentence_transformers(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoder = tmp_path / "encoder"
    save_model(encoder)
    pooling = Pooling(dimension=32, modes=("mean",))
    write_sentence_model(encoder, SentenceModel((pooling,), max_seq_length=20))
    output = train("classify", encoder, tmp_path, monkeypatch, LORA)
    check_elsewhere("classify", output, "sentence-transformers")
    plain = transformers.AutoModel.from_pretrained(encoder)
    adapted = peft.PeftModel.from_pretrained(plain, output / "adapter").eval()
    merged = transformers.AutoModel.from_pretrained(output)
    with torch.no_grad():
        assert_close(adapted(IDS).last_hidden_state, merged(IDS).last_hidden_state)
    texts = ["the cat lost", "a dog"]
    whole, apart = (
        SentenceTransformer(str(path), device="cpu").encode(texts, convert_to_tensor=True)
        for path in (output, output / "adapter")
    )
    assert_close(apart, whole, floor=MULTIPLIED)


def test_our_adapter_of_trained_vectors_is_loaded_by_sentence_transformers(
    base: Path, tmp_path: Path
) -> None:
    rows = "".join(f"{word} saw,the {word}\n" for word in ("cat", "dog", "hat", "a", "the"))
    (tmp_path / "pairs.csv").write_text(f"query,passage\n{rows}")
    sources = Sources("embed", str(base), str(tmp_path / "pairs.csv"))
    task = TASKS["embed"].settings.model_validate({"max_length": 12})
    finetune(sources, tmp_path / "output", task, LORA.model_copy(update={"held_out": 0.4}))
    texts = ["the cat lost", "a dog"]
    ours = Embedder.load(tmp_path / "output", device="cpu", precision="fp32")(texts)
    for name in ("output", "output/adapter"):
        theirs = SentenceTransformer(str(tmp_path / name), device="cpu").encode(texts)
        assert_close(torch.from_numpy(theirs), torch.from_numpy(ours))


SCALES = {"use_rslora": True, "rank_pattern": {"value": 3}, "alpha_pattern": {"0.output.dense": 5}}
# By name: PEFT's task, transformers' class, ours, and settings of the adapter.
KINDS: dict[str, tuple[str, str, type[PretrainedBert], dict[str, Any]]] = {
    "texts": (
        "SEQ_CLS",
        "AutoModelForSequenceClassification",
        BertForSequenceClassification,
        {},
    ),
    "tokens": ("TOKEN_CLS", "AutoModelForTokenClassification", BertForTokenClassification, {}),
    "encoder": ("FEATURE_EXTRACTION", "AutoModel", BertModel, {}),
    "other scales": ("FEATURE_EXTRACTION", "AutoModel", BertModel, SCALES),
}


@pytest.mark.parametrize("is_pickle", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_an_adapter_of_peft_is_opened(
    kind: str, is_pickle: bool, base: Path, tmp_path: Path
) -> None:
    task_type, name, our_class, changes = KINDS[kind]
    labels = {} if name == "AutoModel" else {"num_labels": 3}
    torch.manual_seed(1)
    model = getattr(transformers, name).from_pretrained(base, **labels)
    targets = ["query", "key", "value", "output.dense"]
    config = peft.LoraConfig(
        task_type=task_type, r=4, lora_alpha=6, target_modules=targets, **changes
    )
    adapted = peft.get_peft_model(model, config).eval()
    for parameter_name, parameter in adapted.named_parameters():
        if "lora_B" in parameter_name:
            nn.init.normal_(parameter)
    adapted.save_pretrained(tmp_path / "adapter", safe_serialization=not is_pickle)
    ours = our_class.from_pretrained(tmp_path / "adapter")
    assert_close(read(ours(IDS)), read(adapted(IDS)), floor=MULTIPLIED)


def read(output: Any) -> Tensor:
    """The logits or the hidden states."""
    if isinstance(output, Tensor):
        return output
    found: Tensor = output.logits if hasattr(output, "logits") else output.last_hidden_state
    return found


FAMILY_KINDS = {
    "Model": ("FEATURE_EXTRACTION", BertModel),
    "ForSequenceClassification": ("SEQ_CLS", BertForSequenceClassification),
    "ForTokenClassification": ("TOKEN_CLS", BertForTokenClassification),
}
every_kind = pytest.mark.parametrize(
    "head", mark_all_but(["ForSequenceClassification"], FAMILY_KINDS)
)
every_family = pytest.mark.parametrize(
    "family", mark_all_but(["distilbert", "roberta", "modernbert"], FAMILIES)
)


@every_kind
@every_family
@torch.no_grad()
def test_an_adapter_of_another_family_is_opened(family: str, head: str, tmp_path: Path) -> None:
    folder = make_folder(tmp_path / "base", family, head, with_tokenizer=False)
    task_type, our_class = FAMILY_KINDS[head]
    theirs = getattr(transformers, class_name(family, head)).from_pretrained(folder)
    linear = [name for name, one in theirs.named_modules() if isinstance(one, nn.Linear)]
    targets = {found[1] for name in linear if (found := re.search(r"\.\d+\.(.+)", name))}
    config = peft.LoraConfig(task_type=task_type, r=3, target_modules=targets)
    adapted = peft.get_peft_model(theirs, config).eval()
    generator = torch.Generator().manual_seed(1)
    for name, parameter in adapted.named_parameters():
        if "lora_" in name or "modules_to_save" in name:
            parameter.add_(torch.randn(parameter.shape, generator=generator) / 5)
    adapted.save_pretrained(tmp_path / "adapter")
    ids = random_batch(family, [9])["input_ids"]
    ours = our_class.from_pretrained(tmp_path / "adapter")
    assert_close(read(ours(ids)), read(adapted(ids)), floor=MULTIPLIED)


@every_kind
@every_family
@torch.no_grad()
def test_our_adapter_of_another_family_has_equal_outputs_in_peft(
    family: str, head: str, tmp_path: Path
) -> None:
    folder = make_folder(tmp_path / "base", family, head, with_tokenizer=False)
    _, our_class = FAMILY_KINDS[head]
    ours = our_class.from_pretrained(folder)
    ours.adapter_origin = AdapterOrigin(str(folder), None, identify_base(open_checkpoint(folder)))
    adapt(ours, rank=2)
    generator = torch.Generator().manual_seed(1)
    for parameter in ours.parameters():
        if parameter.requires_grad:
            parameter.add_(torch.randn(parameter.shape, generator=generator) / 5)
    ours.save_pretrained(tmp_path / "adapter")
    ids = random_batch(family, [9])["input_ids"]
    whole = getattr(transformers, class_name(family, head)).from_pretrained(folder)
    theirs = peft.PeftModel.from_pretrained(whole, tmp_path / "adapter").eval()
    assert_close(read(ours(ids)), read(theirs(ids)), floor=MULTIPLIED)
    opened = our_class.from_pretrained(tmp_path / "adapter")
    assert_close(read(opened(ids)), read(ours(ids)), floor=MULTIPLIED)
