"""What `bertkit finetune` writes, loaded by other libraries: the same scores, or an error."""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnxruntime
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from sentence_transformers import CrossEncoder, SentenceTransformer
from tests.closeness import assert_close, close
from tests.exhaustive import mark_all_but
from tests.families import FAMILIES, make_folder
from tests.parity.agreement import pad_sequences
from tests.unit.recipes.finetune.small import make_rows, save_model, write_rows
from torch import Tensor

from bertkit.checkpoints.bundled import find_bundled
from bertkit.checkpoints.sentence_modules import Pooling
from bertkit.checkpoints.sentence_transformers import SentenceModel, write_sentence_model
from bertkit.inference.predictor import EncodedExamples, Predictor
from bertkit.jobs.convert import convert
from bertkit.jobs.export import export
from bertkit.recipes.finetune.run import Sources, finetune
from bertkit.recipes.finetune.settings import FineTuneSettings
from bertkit.tasks.batch import Encoded
from bertkit.tasks.classify import ClassifySettings
from bertkit.tasks.table import TASKS

MULTIPLIED = 50.0  # heads multiply what the encoder rounds: their sums have parts of this size
SETTINGS = FineTuneSettings(epochs=1, batch_size=4, learning_rate=1e-2, device="cpu")


@dataclass(frozen=True)
class Case:
    """A task's head in transformers.

    Attributes:
        model: transformers' class.
        ending: of the file.
        content: of the file.
        inputs: what is asked of the finished model.
        scores: of what transformers returns: `[sequences, ...]` or `[sequences, length, ...]`.
        is_choice: whether the sequences are choices of one question.
    """

    model: str
    ending: str
    content: str
    inputs: tuple[Any, ...]
    scores: Callable[[Any], Tensor]
    is_choice: bool = False


def in_lines(*rows: dict[str, Any]) -> str:
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def ask(number: int, answer: str) -> dict[str, Any]:
    context = "the cat saw a dog . a dog lost the hat ."
    found = {"text": answer, "answer_start": context.index(answer)}
    return {
        "title": "t",
        "paragraphs": [
            {
                "context": context,
                "qas": [{"id": str(number), "question": "a cat", "answers": [found]}],
            }
        ],
    }


# Encoders of texts and rerankers have parity tests of their own.
WITH_COMMAND = [name for name, entry in TASKS.items() if entry.has_command]
CASES = {
    "classify": Case(
        "AutoModelForSequenceClassification",
        "csv",
        "text,label\n" + "the cat,x\na dog,y\nthe hat,z\n" * 3,
        ("the cat lost", "a dog", ""),
        lambda output: output.logits,
    ),
    "regress": Case(
        "AutoModelForSequenceClassification",
        "csv",
        "text,label\n" + "the cat,1.5\na dog,-2\nthe hat,0\n" * 3,
        ("the cat lost", "a dog", ""),
        lambda output: output.logits,
    ),
    "tag": Case(
        "AutoModelForTokenClassification",
        "conll",
        "the O\ncats B-PER\nlost O\n\na O\ndog B-LOC\n\n" * 3,
        ("the cats lost a hat", "a dog"),
        lambda output: output.logits,
    ),
    "answer": Case(
        "AutoModelForQuestionAnswering",
        "json",
        json.dumps({"version": "1.1", "data": [ask(1, "a dog"), ask(2, "hat"), ask(3, "cat")]}),
        (("a cat", "the cat saw a dog ."), ("a dog", "the hat . " * 6)),
        lambda output: torch.stack([output.start_logits, output.end_logits], dim=-1),
    ),
    "choose": Case(
        "AutoModelForMultipleChoice",
        "jsonl",
        in_lines(
            *(
                {"context": "the cat", "choices": ["a hat", "the dog saw", "lost"], "label": number}
                for number in (0, 1, 2) * 3
            )
        ),
        ({"context": "the cat", "choices": ["a dog", "the hat saw a dog"]},),
        lambda output: output.logits[0],
        is_choice=True,
    ),
}


def test_every_task_is_among_the_cases():
    assert set(WITH_COMMAND) <= set(CASES)


@pytest.fixture(scope="module")
def sentence_encoder(tmp_path_factory):
    """A small folder of sentence-transformers, which averages tokens."""
    folder = tmp_path_factory.mktemp("encoder") / "model"
    save_model(folder, num_hidden_layers=4)
    pooling = Pooling(dimension=32, modes=("mean",))
    write_sentence_model(folder, SentenceModel((pooling,), max_seq_length=20))
    return folder


HEADS: dict[str, dict[str, Any]] = {
    "default": {},
    "linear": {"features": "last"},
    "linear on four layers": {"features": "last_four"},
}


@pytest.mark.parametrize("head", mark_all_but(["default"], HEADS))
@pytest.mark.parametrize("name", WITH_COMMAND)
def test_each_head_has_equal_scores_elsewhere_or_is_refused(
    name, head, sentence_encoder, tmp_path, monkeypatch
):
    settings = SETTINGS.model_copy(update=HEADS[head])
    output = train(name, sentence_encoder, tmp_path, monkeypatch, settings)
    is_plain = head in ("default", "linear")
    is_averaged = name in ("classify", "regress")
    library = "transformers" if is_plain else "bertkit"
    check_elsewhere(name, output, "sentence-transformers" if is_plain and is_averaged else library)


@pytest.mark.parametrize("pooling", mark_all_but(["mean"], ["cls", "mean", "max"]))
@pytest.mark.parametrize("name", mark_all_but(["classify"], ["classify", "regress"]))
def test_each_pooling_has_equal_scores_elsewhere(
    name, pooling, sentence_encoder, tmp_path, monkeypatch
):
    output = train(name, sentence_encoder, tmp_path, monkeypatch, SETTINGS, pooling=pooling)
    check_elsewhere(name, output, "transformers" if pooling == "cls" else "sentence-transformers")


@pytest.mark.parametrize("pooling", mark_all_but(["mean"], ["cls", "mean"]))
@pytest.mark.parametrize("name", mark_all_but(["classify"], WITH_COMMAND))
@pytest.mark.parametrize("family", mark_all_but(["roberta", "mpnet", "modernbert"], FAMILIES))
def test_each_family_has_equal_scores_elsewhere(family, name, pooling, tmp_path, monkeypatch):
    parent = make_folder(tmp_path / "parent", family)
    is_averaged = name in ("classify", "regress") and pooling == "mean"
    settings = {"pooling": pooling} if is_averaged else {}
    output = train(name, parent, tmp_path, monkeypatch, SETTINGS, **settings)
    check_elsewhere(name, output, "sentence-transformers" if is_averaged else "transformers")


@pytest.mark.parametrize("name", mark_all_but(["classify"], WITH_COMMAND))
def test_the_defaults_on_the_bundled_model_have_equal_scores_elsewhere(name, tmp_path, monkeypatch):
    pytest.importorskip("bertkit_minilm")
    settings = FineTuneSettings(epochs=1, batch_size=16, device="cpu")
    output = train(name, find_bundled("vectors"), tmp_path, monkeypatch, settings)
    is_averaged = name in ("classify", "regress")
    check_elsewhere(name, output, "sentence-transformers" if is_averaged else "transformers")


def test_an_older_folder_loads_and_is_mended_by_convert(sentence_encoder, tmp_path, monkeypatch):
    """Without the modules and with the classifier in the shape that transformers mistakes."""
    new = train("classify", sentence_encoder, tmp_path, monkeypatch)
    old = tmp_path / "old"
    shutil.copytree(new, old, ignore=shutil.ignore_patterns("run", "modules.json", "?_*"))
    weights = load_file(old / "model.safetensors")
    weights["classifier.weight"] = weights["classifier.weight"].squeeze(1)
    save_file(weights, old / "model.safetensors", {"format": "pt"})
    text = CASES["classify"].inputs[0]
    expected = Predictor.load(new, device="cpu", engine="torch")(text)
    assert Predictor.load(old, device="cpu", engine="torch")(text) == expected
    convert(old, tmp_path / "mended")
    shutil.copy(new / "README.md", tmp_path / "mended")
    check_elsewhere("classify", tmp_path / "mended", "sentence-transformers")


def test_a_causal_classifier_is_refused_by_transformers(tmp_path, monkeypatch):
    parent = tmp_path / "causal"
    save_model(parent, is_decoder=True)
    check_elsewhere("classify", train("classify", parent, tmp_path, monkeypatch), "bertkit")


def train(
    name: str,
    parent: Path,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    settings: FineTuneSettings = SETTINGS,
    **task_settings: Any,
) -> Path:
    """A model folder of a task."""
    path = folder / f"train.{CASES[name].ending}"
    path.write_text(CASES[name].content)
    questions = {"max_question_length": 6, "stride": 4} if name == "answer" else {}
    task = TASKS[name].settings.model_validate({"max_length": 20, **questions, **task_settings})
    finetune(Sources(name, str(parent), str(path), str(path)), folder / "out", task, settings)
    return folder / "out"


def check_elsewhere(name: str, output: Path, library: str) -> None:
    """Its card names the library that gives equal scores; transformers refuses if it differs."""
    case = CASES[name]
    predictor = Predictor.load(output, engine="torch", device="cpu", precision="fp32")
    examples = [predictor.task.make_example(value, "here") for value in case.inputs]
    encoded = predictor.task.encode(examples, predictor.loaded.tokenizer)
    ours = [
        torch.from_numpy(rows) for rows in predictor.compute_window(EncodedExamples([], encoded))
    ]
    assert f"library_name: {library}\n" in (output / "README.md").read_text()
    if library == "transformers":
        theirs = compute(case, output, encoded, scored=predictor.task.scored)
        for one, other in zip(ours, theirs, strict=True):
            assert_close(one, other, floor=MULTIPLIED)
        return
    with pytest.raises(RuntimeError, match="ignore_mismatched_sizes"):
        getattr(transformers, case.model).from_pretrained(output)
    transformers.AutoModel.from_pretrained(output)  # the encoder is anybody's
    transformers.AutoTokenizer.from_pretrained(output)
    if library == "sentence-transformers":
        assert "SentenceTransformer(…).encode(texts)" in (output / "README.md").read_text()
        model = SentenceTransformer(str(output), device="cpu")
        theirs = model.encode(list(case.inputs), convert_to_tensor=True)
        assert_close(torch.cat(ours), theirs, floor=MULTIPLIED)
    else:
        assert not (output / "modules.json").exists()


@torch.no_grad()
def compute(case: Case, folder: Path, encoded: list[Encoded], scored: str) -> list[Tensor]:
    """The scores of each example by transformers, a padded batch for each."""
    model, report = getattr(transformers, case.model).from_pretrained(
        folder, output_loading_info=True
    )
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    found = []
    for one in encoded:
        tensors = pad_sequences(one.sequences)
        if case.is_choice:
            tensors = {key: tensor[None] for key, tensor in tensors.items()}
        scores = case.scores(model.eval()(**tensors))
        if scored == "token":
            lengths = [len(sequence.ids) for sequence in one.sequences]
            scores = torch.cat([each[:n] for each, n in zip(scores, lengths, strict=True)])
        found.append(scores)
    return found


def test_transformers_cuts_texts_where_fine_tuning_did(tmp_path, monkeypatch):
    save_model(tmp_path / "parent")
    train = write_rows(tmp_path / "train.csv", make_rows(16, 1))
    output = tmp_path / "model"
    sources = Sources("classify", str(tmp_path / "parent"), str(train))
    finetune(sources, output, ClassifySettings(max_length=8), SETTINGS)
    tokenizer = transformers.AutoTokenizer.from_pretrained(output)
    assert tokenizer.model_max_length == 8
    long = "the cat saw a dog . a dog lost the hat"
    (output / "task.json").unlink()  # then the folder is like one of transformers
    classify = Predictor.load(output, device="cpu", engine="torch", precision="fp32")
    assert classify.task.settings.max_length == 8
    pipeline = transformers.pipeline("text-classification", str(output), device="cpu", top_k=None)
    (found,) = pipeline([long], truncation=True)
    theirs = {one["label"]: one["score"] for one in found}
    assert classify(long).probabilities == close(theirs, "float32")
    assert classify(long) == classify("the cat saw a dog .")


# Held-out labels of which no model can get all right, so that a temperature is fitted.
PUZZLES = "the cat,{0}\na dog,{1}\nthe hat,{0}\na hat,{1}\nthe hat,{1}\na dog,{0}\n" * 3
TEXTS = ["the cat lost", "a dog saw the hat", "hat"]
LABELS = [("x", "y"), ("x|y", "z")]
PAIRS = [("the cat saw", "a hat"), ("the cat saw a dog . a dog lost", "the hat")]


def puzzle(folder: Path, encoder: Path, rows: str, **task_settings: Any) -> Path:
    """A classifier that makes mistakes on its held-out examples."""
    path = folder / "puzzles.csv"
    path.write_text(rows)
    settings = ClassifySettings(max_length=12, **task_settings)
    sources = Sources("classify", str(encoder), str(path), str(path))
    result = finetune(sources, folder / "out", settings, SETTINGS)
    assert "before scaling" in (result.output / "report.html").read_text()
    return result.output


def ask_ours(folder: Path, inputs: Any) -> Tensor:
    classify = Predictor.load(folder, device="cpu", engine="torch", precision="fp32")
    return torch.tensor([list(found.probabilities.values()) for found in classify(inputs)])


@pytest.mark.parametrize("labels", mark_all_but([("x", "y")], LABELS))
def test_probabilities_are_calibrated_in_transformers(labels, sentence_encoder, tmp_path):
    is_multi = "|" in labels[0]
    folder = puzzle(
        tmp_path,
        sentence_encoder,
        "text,label\n" + PUZZLES.format(*labels),
        pooling="cls",
        multi_label=is_multi,
        label_separator="|",
    )
    pipeline = transformers.pipeline("text-classification", str(folder), device="cpu", top_k=None)
    ids = pipeline.model.config.label2id
    found = [sorted(each, key=lambda one: ids[one["label"]]) for each in pipeline(TEXTS)]
    theirs = torch.tensor([[one["score"] for one in each] for each in found])
    assert_close(ask_ours(folder, TEXTS), theirs)


@pytest.mark.exhaustive
def test_probabilities_are_calibrated_in_sentence_transformers(sentence_encoder, tmp_path):
    folder = puzzle(tmp_path, sentence_encoder, "text,label\n" + PUZZLES.format("x", "y"))
    model = SentenceTransformer(str(folder), device="cpu")
    theirs = model.encode(TEXTS, convert_to_tensor=True).softmax(dim=1)
    assert_close(ask_ours(folder, TEXTS), theirs)


@pytest.mark.exhaustive
def test_probabilities_are_calibrated_in_an_export(sentence_encoder, tmp_path):
    folder = puzzle(tmp_path, sentence_encoder, "text,label\n" + PUZZLES.format("x", "y"))
    files = export(folder, tmp_path / "onnx").files
    (name,) = (name for name in files if name.endswith(".onnx"))
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "onnx")
    inputs = tokenizer(TEXTS, padding=True, return_tensors="np")
    session = onnxruntime.InferenceSession(tmp_path / "onnx" / name)
    (logits,) = session.run(["logits"], dict(inputs))
    assert_close(ask_ours(folder, TEXTS), torch.from_numpy(logits).softmax(dim=1))


@pytest.mark.parametrize("pooling", mark_all_but(["mean"], ["cls", "mean", "max"]))
@pytest.mark.parametrize("labels", mark_all_but([("x", "y")], LABELS))
def test_a_cross_encoder_gives_pairs_calibrated_probabilities(
    labels, pooling, sentence_encoder, tmp_path
):
    rows = PUZZLES.replace(",", ",the dog,").format(*labels)
    is_multi = "|" in labels[0]
    folder = puzzle(
        tmp_path,
        sentence_encoder,
        "premise,hypothesis,label\n" + rows,
        pooling=pooling,
        multi_label=is_multi,
        label_separator="|",
    )
    model = CrossEncoder(str(folder), device="cpu")
    theirs = model.predict(PAIRS, apply_softmax=not is_multi, convert_to_tensor=True)
    assert_close(ask_ours(folder, PAIRS), theirs)


@pytest.mark.parametrize("pooling", mark_all_but(["mean"], ["cls", "mean"]))
def test_a_cross_encoder_gives_the_numbers_of_a_regression(pooling, sentence_encoder, tmp_path):
    rows = "the cat,a dog lost,1.5\na dog,the hat saw,-3\n" * 8
    (tmp_path / "pairs.csv").write_text(f"premise,hypothesis,label\n{rows}")
    sources = Sources("regress", str(sentence_encoder), str(tmp_path / "pairs.csv"))
    settings = TASKS["regress"].settings(max_length=12, pooling=pooling)
    finetune(sources, tmp_path / "out", settings, SETTINGS)
    regress = Predictor.load(tmp_path / "out", device="cpu", engine="torch", precision="fp32")
    ours = torch.tensor([found.value for found in regress(PAIRS)])
    model = CrossEncoder(str(tmp_path / "out"), device="cpu")
    assert_close(ours, model.predict(PAIRS, convert_to_tensor=True))
    convert(tmp_path / "out", tmp_path / "copy")  # the modules are written anew
    copied = CrossEncoder(str(tmp_path / "copy"), device="cpu")
    assert_close(ours, copied.predict(PAIRS, convert_to_tensor=True))
