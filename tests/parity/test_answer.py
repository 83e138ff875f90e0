"""Question answering against google's `run_squad.py`, stated anew, and against transformers."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from tests.closeness import assert_close, close
from tests.parity.agreement import SIZES, randomize

from bertkit.models.bert.fine_tuning import BertForQuestionAnswering
from bertkit.nn.packing import PackedBatch
from bertkit.tasks.answer import AnswerSettings
from bertkit.tasks.answer.examples import AnswerExample, locate_answer
from bertkit.tasks.answer.task import AnswerQuestions
from bertkit.tasks.batch import pack_sequences
from bertkit.tasks.saved import list_scorer_files
from bertkit.tasks.task_batch import TaskBatch
from bertkit.tokenization.engine import SPECIAL_TOKENS
from bertkit.tokenization.tokenizer import Tokenizer

WORDS = ("ada", "wrote", "the", "first", "pro", "##gram", "##s", "in", "1843", ",", ".", "##3")
TOKENIZER = Tokenizer([*SPECIAL_TOKENS, *WORDS])
SPOKEN = ("ada", "wrote", "the", "first", "programs", "pro", "in", "1843", "18433", ",", ".")
NUM_CASES = 1000


def draw_settings(random: np.random.Generator) -> AnswerSettings:
    """Lengths that make one to twenty windows."""
    max_length = int(random.integers(9, 40))
    return AnswerSettings(
        max_length=max_length,
        max_question_length=int(random.integers(1, max_length - 7)),
        stride=int(random.integers(1, 14)),
        max_answer_length=int(random.integers(1, 9)),
        n_best=int(random.integers(2, 12)),
        version=str(random.choice(["1.1", "2.0"])),
    )


def draw_example(random: np.random.Generator) -> AnswerExample:
    """A question, a context that repeats its words, and an answer or none."""
    question = " ".join(random.choice(SPOKEN, random.integers(0, 12)))
    words = list(random.choice(SPOKEN, random.integers(1, 50)))
    context = "  ".join(words)
    first = int(random.integers(len(words)))
    answer = "  ".join(words[first : first + int(random.integers(1, 5))])
    start = len("  ".join(words[:first])) + 2 * (first > 0)
    golds = (locate_answer(context, answer, start),) if random.random() < 0.8 else ()
    return AnswerExample(question, context, golds, "an id")


def google_features(example: AnswerExample, settings: AnswerSettings) -> list[dict[str, Any]]:
    """`convert_examples_to_features`: one dictionary a window."""
    query = TOKENIZER.encode(example.question).tokens[1:-1][: settings.max_question_length]
    encoding = TOKENIZER.encode(example.context)
    document, offsets = encoding.tokens[1:-1], encoding.offsets[1:-1]
    room = settings.max_length - len(query) - 3
    spans, start = [], 0
    while start < len(document):
        length = min(len(document) - start, room)
        spans.append((start, length))
        if start + length == len(document):
            break
        start += min(length, settings.stride)
    answer_tokens = []
    if example.answers:
        begin, end = example.span
        answer_tokens = [t for t, (a, b) in enumerate(offsets) if a < end and b > begin]
    features = []
    for index, (start, length) in enumerate(spans):
        tokens = ["[CLS]", *query, "[SEP]", *document[start : start + length], "[SEP]"]
        original, is_max = {}, {}
        for place in range(length):
            original[len(query) + 2 + place] = offsets[start + place]
            is_max[len(query) + 2 + place] = google_best_span(spans, start + place) == index
        inside = [start <= token < start + length for token in answer_tokens]
        target = (0, 0)
        if answer_tokens and all(inside):
            shift = len(query) + 2 - start
            target = (answer_tokens[0] + shift, answer_tokens[-1] + shift)
        segments = [0] * (len(query) + 2) + [1] * (length + 1)
        features.append(
            {"tokens": tokens, "segments": segments, "original": original, "is_max": is_max}
            | {"target": target}
        )
    return features


def google_best_span(spans: list[tuple[int, int]], position: int) -> int:
    """`_check_is_max_context`: which window has most of a token's context."""
    best_score, best = None, -1
    for index, (start, length) in enumerate(spans):
        if not start <= position < start + length:
            continue
        score = min(position - start, start + length - 1 - position) + 0.01 * length
        if best_score is None or score > best_score:
            best_score, best = score, index
    return best


def google_n_best(
    features: list[dict[str, Any]], context: str, rows: list[np.ndarray], settings: AnswerSettings
) -> tuple[list[dict[str, Any]], float | None]:
    """`write_predictions`: the n-best list, and the null odds by the rules of 2.0."""
    found, null = [], None
    for feature, logits in zip(features, rows, strict=True):
        starts, ends = logits[:, 0].tolist(), logits[:, 1].tolist()
        if null is None or starts[0] + ends[0] < sum(null[1:]):
            null = ("", starts[0], ends[0])
        for start in best_indexes(starts, settings.n_best):
            for end in best_indexes(ends, settings.n_best):
                if start not in feature["original"] or end not in feature["original"]:
                    continue
                if not feature["is_max"][start]:
                    continue
                if end < start or end - start + 1 > settings.max_answer_length:
                    continue
                text = context[feature["original"][start][0] : feature["original"][end][1]]
                found.append((text, starts[start], ends[end]))
    best = max((sum(one[1:]) for one in found), default=0.0)
    if settings.version == "2.0":
        found.append(null)
    n_best = {}
    for text, start_logit, end_logit in sorted(found, key=lambda one: -(one[1] + one[2])):
        if len(n_best) < settings.n_best:
            n_best.setdefault(text, (start_logit, end_logit))
    if settings.version == "2.0":
        n_best.setdefault("", null[1:])
    total = sum(math.exp(sum(logits)) for logits in n_best.values())
    listed = [
        {"text": text, "probability": math.exp(sum(logits)) / total}
        | {"start_logit": logits[0], "end_logit": logits[1]}
        for text, logits in n_best.items()
    ]
    return listed, sum(null[1:]) - best if settings.version == "2.0" else None


def best_indexes(values: list[float], number: int) -> list[int]:
    return [i for i, _ in sorted(enumerate(values), key=lambda one: -one[1])[:number]]


def test_windows_and_n_best_are_googles_in_1000_random_cases():
    random = np.random.default_rng(0)
    num_windows, num_empty, num_null = 0, 0, 0
    for _ in range(NUM_CASES):
        settings, example = draw_settings(random), draw_example(random)
        task = AnswerQuestions(settings, numbers={"null_threshold": -3.0})
        (encoded,) = task.encode([example], TOKENIZER)
        features = google_features(example, settings)
        num_windows += len(features)
        assert len(encoded.sequences) == len(features)
        for sequence, feature in zip(encoded.sequences, features, strict=True):
            assert [TOKENIZER.vocabulary[id_] for id_ in sequence.ids] == feature["tokens"]
            assert sequence.segments == feature["segments"]
        assert encoded.labels.tolist() == [list(feature["target"]) for feature in features]
        rows = [draw_logits(random, len(feature["tokens"])) for feature in features]
        answer = task.decode(example, encoded, np.concatenate(rows))
        expected, odds = google_n_best(features, example.context, rows, settings)
        if not any(one["text"] for one in expected):  # google's answer is "empty" then
            num_empty += 1
            wide = settings.model_copy(update={"n_best": settings.max_length})
            everywhere, _ = google_n_best(features, example.context, rows, wide)
            assert answer.best.text == next(one["text"] for one in everywhere if one["text"])
            continue
        files = list_scorer_files(task, [example], [answer])
        listed = files["nbest_predictions.json"]["an id"]
        assert [one.pop("probability") for one in listed] == close(
            [one.pop("probability") for one in expected]
        )
        assert listed == expected
        assert answer.null_odds == (None if odds is None else close(odds))
        is_null = odds is not None and odds > -3.0
        num_null += is_null
        first = next(one["text"] for one in expected if one["text"])
        assert files["predictions.json"] == {"an id": "" if is_null else first}
        assert answer.is_null == is_null
        span = example.context[answer.start : answer.stop] if not is_null else ""
        assert span == answer.text
    assert num_windows > 3 * NUM_CASES
    assert 0 < num_empty < NUM_CASES / 5
    assert NUM_CASES / 20 < num_null < NUM_CASES / 2


def draw_logits(random: np.random.Generator, num_tokens: int) -> np.ndarray:
    """With ties."""
    return random.normal(size=(num_tokens, 2)).round(1).astype(np.float32)


def save_theirs(folder: Path) -> Any:
    config = transformers.BertConfig(**{**SIZES, "vocab_size": 17}, num_labels=2)
    model = transformers.BertForQuestionAnswering(config).eval()
    randomize(model, 0.5)
    model.save_pretrained(folder)
    return model.double()


def test_loss_and_gradients_are_transformers(tmp_path):
    theirs = save_theirs(tmp_path)
    ours = BertForQuestionAnswering.from_pretrained(tmp_path).double()
    settings = AnswerSettings(max_length=12, max_question_length=4, stride=3)
    random = np.random.default_rng(1)
    task = AnswerQuestions(settings)
    encoded = task.encode([draw_example(random) for _ in range(4)], TOKENIZER)
    batch = TaskBatch.collate(encoded, range(4))
    assert len(set(batch.packed.lengths)) > 2
    assert batch.labels.any()
    scores = task.loss(ours.scores(batch.packed), batch)
    windows = [sequence for one in encoded for sequence in one.sequences]
    outputs = [
        theirs(
            input_ids=torch.tensor([window.ids]),
            token_type_ids=torch.tensor([window.segments]),
            start_positions=label[:1],
            end_positions=label[1:],
        )
        for window, label in zip(windows, batch.labels, strict=True)
    ]
    assert_close(scores.losses["task"], sum(one.loss for one in outputs))
    scores.losses["task"].backward()
    sum(one.loss for one in outputs).backward()
    assert_close(ours.qa_outputs.weight.grad, theirs.qa_outputs.weight.grad)
    pairs = [(one.start_logits.argmax(), one.end_logits.argmax()) for one in outputs]
    hits = sum(tuple(label) == pair for label, pair in zip(batch.labels, pairs, strict=True))
    assert int(scores.correct["task"]) == hits


def test_half_precision_logits_are_scored_in_float32():
    task = AnswerQuestions(AnswerSettings())
    encoded = task.encode([AnswerExample("ada", "wrote", ())], TOKENIZER)
    batch = TaskBatch.collate(encoded, [0])
    logits = torch.full((batch.num_tokens, 2), 60000.0, dtype=torch.float16)
    loss = task.loss(logits, batch).losses["task"]
    assert loss.dtype == torch.float32
    assert float(loss) == close(math.log(batch.num_tokens), "float32")


QUESTION = "When did Ada publish the first program?"
CONTEXT = (
    "Luigi Menabrea described the engine in 1842. Ada Lovelace's notes on it, published in"
    " September 1843, are longer than the paper itself; note G has what many call the first"
    " program. The café where she is said to have met Babbage isn't known, nor is much else."
)


@pytest.mark.parametrize("max_length", [32, 384])
def test_text_is_read_and_answered_as_with_transformers(max_length, minilm, tmp_path):
    torch.manual_seed(0)
    model = BertForQuestionAnswering.from_pretrained(minilm, new_heads=True)
    torch.nn.init.normal_(model.qa_outputs.weight)
    model.save_pretrained(tmp_path)
    Tokenizer.load(minilm).save(tmp_path)
    settings = AnswerSettings(
        max_length=max_length, max_question_length=12, stride=9, n_best=max_length
    )
    task = AnswerQuestions(settings)
    example = task.make_example((QUESTION, CONTEXT), "here")
    (encoded,) = task.encode([example], Tokenizer.load(tmp_path))
    with torch.no_grad():
        logits = model.scores(PackedBatch.of(pack_sequences(encoded.sequences))).numpy()
    answer = task.decode(example, encoded, logits)

    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    overlap = max_length - encoded.alignment.num_before - 1 - 9  # what transformers calls stride
    theirs = tokenizer(
        QUESTION,
        CONTEXT,
        max_length=max_length,
        truncation="only_second",
        stride=overlap,
        return_overflowing_tokens=True,
        return_offsets_mapping=True,
    )
    assert theirs["input_ids"] == [sequence.ids for sequence in encoded.sequences]
    reference = transformers.AutoModelForQuestionAnswering.from_pretrained(tmp_path)
    best = (-math.inf, 0, 0)
    rows = np.split(logits, np.cumsum([len(ids) for ids in theirs["input_ids"]])[:-1])
    for number, ids in enumerate(theirs["input_ids"]):
        segments = torch.tensor([theirs["token_type_ids"][number]])
        with torch.no_grad():
            output = reference(input_ids=torch.tensor([ids]), token_type_ids=segments)
        starts, ends = output.start_logits[0], output.end_logits[0]
        assert_close(torch.from_numpy(rows[number]), torch.stack([starts, ends], dim=1))
        part, offsets = encoded.alignment.parts[number], theirs["offset_mapping"][number]
        for first, token in enumerate(part, start=encoded.alignment.num_before):
            if encoded.alignment.owners[token] != number:
                continue
            for last in range(first, min(first + 30, len(ids) - 1)):
                score = float(starts[first]) + float(ends[last])
                best = max(best, (score, offsets[first][0], offsets[last][1]))
    assert (answer.start, answer.stop) == best[1:]
    assert answer.text == CONTEXT[best[1] : best[2]]
