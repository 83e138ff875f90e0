"""The demo: from the documentation that comes with Python to a report on a small BERT.

It calls the public recipes in order. Existing work is reused: text, a finished vocabulary and
finished shards are kept, and an interrupted run resumes.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import starmap
from pathlib import Path

import numpy as np

from bertkit.base.errors import MissingExtraError
from bertkit.base.output import open_output
from bertkit.checkpoints.bundled import find_bundled
from bertkit.checkpoints.run_folder import RUN_FOLDER
from bertkit.data.shards import Shard, ShardSet
from bertkit.inference.engines.torch_engine import choose_engine
from bertkit.inference.fill_mask import Candidate, FillMask
from bertkit.inference.loading import LoadedModel
from bertkit.models.bert.heads import BertForPreTraining
from bertkit.recipes.prepare.run import prepare
from bertkit.recipes.pretrain.corpus import describe_corpus
from bertkit.recipes.pretrain.job import held_out_batches
from bertkit.recipes.pretrain.new_model import build_config, build_new_model
from bertkit.recipes.pretrain.run import pretrain
from bertkit.recipes.pretrain.settings import PretrainSettings
from bertkit.recipes.train_tokenizer import train_tokenizer
from bertkit.reports.report import write_report
from bertkit.reports.text import format_percent
from bertkit.tasks.objectives.bert import PreTrainingBatch
from bertkit.tokenization.tokenizer import Tokenizer
from bertkit.training.history import TrainingHistory
from bertkit.training.log import read_log
from bertkit.training.record import LOG_FILE
from bertkit_demo.baselines import NeighborGuesser, neighbors
from bertkit_demo.page import Accuracies, DemoFacts, Example, build_report
from bertkit_demo.python_docs import write_corpus
from bertkit_demo.settings import HELD_OUT, PREPARE_SETTINGS, TOKENIZER_SETTINGS, DemoSettings

NUM_CANDIDATES = 3
TEXTS = (
    "Return the number of [MASK] in the list.",
    "If the file does not [MASK], an error is raised.",
    "The default [MASK] is None.",
    "This method returns a [MASK] of strings.",
    "Raises an exception if the argument is not a [MASK].",
)


@dataclass(frozen=True)
class DemoResult:
    """The result of the demo.

    Attributes:
        report: the HTML report.
        run: the run's folder, for `fill-mask` and `inspect`.
        accuracies: accuracies of the model and the baselines.
        examples: masked texts with predictions before and after.
        elapsed_seconds: duration of this call.
    """

    report: Path
    run: Path
    accuracies: Accuracies
    examples: tuple[Example, ...]
    elapsed_seconds: float


def run_demo(
    output: Path, settings: DemoSettings, say: Callable[[str], None] = lambda text: None
) -> DemoResult:
    """Run the steps that aren't finished yet, and write the report.

    Args:
        output: the folder for text, tokenizer, shards, run and report.
        settings: settings of the demo.
        say: called with a line of text when each step begins.

    Raises:
        ResumeError: `output` holds a run with other settings, or another process runs the demo
            there.
        StoppedError: a signal arrived; calling again with the same arguments resumes.
    """
    with open_output(output, "running the demo in", is_workplace=True):
        return _run_demo(output, settings, say)


def _run_demo(output: Path, settings: DemoSettings, say: Callable[[str], None]) -> DemoResult:
    """Run the demo in a folder that this process has locked."""
    started = time.monotonic()
    tokenizer_folder, shard_folder = output / "tokenizer", output / "shards"
    run = output / RUN_FOLDER
    say("1/5  Text: the documentation that comes with Python, whole packages held out")
    corpus = write_corpus(output / "corpus", HELD_OUT)
    training, held_out = str(corpus.training), str(corpus.held_out)
    if not tokenizer_folder.exists():
        say("2/5  Vocabulary: learning word pieces")
        train_tokenizer([training, held_out], tokenizer_folder, TOKENIZER_SETTINGS)
    say("3/5  Shards: the same text as token ids")
    prepare(
        [training], tokenizer_folder, shard_folder, PREPARE_SETTINGS, held_out_inputs=[held_out]
    )
    pretrain_settings = settings.pretrain_settings()
    say(f"4/5  Pre-training: {settings.minutes:g} minutes")
    trained = pretrain(shard_folder, run, pretrain_settings)
    say("5/5  Report")
    shards, tokenizer = ShardSet.open(shard_folder), Tokenizer.load(tokenizer_folder)
    batches = held_out_batches(shards, tokenizer, pretrain_settings)
    facts = DemoFacts(
        accuracies=measure_accuracies(shards, tokenizer, batches, trained.metrics["mlm_accuracy"]),
        examples=fill_examples(
            untrained_model(tokenizer, pretrain_settings), FillMask.load(run), load_bundled_model()
        ),
        history=TrainingHistory.from_rows(read_log(run / LOG_FILE)),
        settings={"Pre-training": pretrain_settings.model_dump(mode="json")},
        corpus=describe_corpus(shards),
        run=run,
    )
    write_report(output / "report.html", build_report(facts))
    return DemoResult(
        report=output / "report.html",
        run=run,
        accuracies=facts.accuracies,
        examples=tuple(facts.examples),
        elapsed_seconds=time.monotonic() - started,
    )


def untrained_model(tokenizer: Tokenizer, settings: PretrainSettings) -> FillMask:
    """Return the model as initialized, before its first step."""
    model = build_new_model(build_config(settings, tokenizer), settings)
    assert isinstance(model, BertForPreTraining)
    return FillMask(LoadedModel(model.config, tokenizer), choose_engine("auto", model.eval()))


def load_bundled_model() -> FillMask | None:
    """Return the model that comes with bertkit if its package is installed."""
    try:
        folder = find_bundled("words")
    except MissingExtraError:
        return None
    return FillMask.load(folder)


def fill_examples(
    before: FillMask, after: FillMask, bundled: FillMask | None
) -> tuple[Example, ...]:
    """Fill the masked words in `TEXTS` with each model."""
    answers = [_fill_each(model) for model in (before, after, bundled)]
    return tuple(starmap(Example, zip(TEXTS, *answers, strict=True)))


def _fill_each(model: FillMask | None) -> list[str]:
    if model is None:
        return [""] * len(TEXTS)
    return [_show(result.blanks[0]) for result in model(list(TEXTS), top_k=NUM_CANDIDATES)]


def measure_accuracies(
    shards: ShardSet, tokenizer: Tokenizer, batches: Sequence[PreTrainingBatch], model: float
) -> Accuracies:
    """Measure the baselines on the masked positions on which the model was evaluated.

    Args:
        shards: the shards; the baselines count their training text.
        tokenizer: the shards' tokenizer.
        batches: the held-out examples of the run's evaluations.
        model: the model's accuracy on them.
    """
    labels = np.concatenate([batch.labels.numpy() for batch in batches])
    sides = [
        neighbors(
            batch.packed.input_ids.numpy(),
            batch.positions.numpy(),
            tokenizer.cls_id,
            tokenizer.sep_id,
        )
        for batch in batches
    ]
    left, right = (np.concatenate(side) for side in zip(*sides, strict=True))
    most_frequent = int(shards.token_counts.argmax())
    guesses = count_neighbors(shards.train, tokenizer).guess(left, right, most_frequent)
    return Accuracies(
        num_masked=len(labels),
        model=model,
        neighbors=float((guesses == labels).mean()),
        most_frequent=float((labels == most_frequent).mean()),
        most_frequent_token=tokenizer.vocabulary[most_frequent],
    )


def count_neighbors(shards: Sequence[Shard], tokenizer: Tokenizer) -> NeighborGuesser:
    """Count neighbors in the whole training text."""
    starts = np.cumsum([0, *(shard.num_tokens for shard in shards)])
    sentences, documents = [starts[-1:]], [starts[-1:]]
    for shard, start in zip(shards, starts, strict=False):
        begins = shard.sentence_offsets.astype(np.int64) + start
        sentences.insert(-1, begins[:-1])
        documents.insert(-1, begins[shard.document_offsets[:-1]])
    return NeighborGuesser.count(
        np.concatenate([shard.tokens(0, shard.num_tokens) for shard in shards]),
        np.concatenate(sentences),
        np.concatenate(documents),
        border_id=tokenizer.sep_id,
        vocab_size=tokenizer.vocab_size,
    )


def _show(candidates: Sequence[Candidate]) -> str:
    return ", ".join(f"{each.token} {format_percent(each.probability)}" for each in candidates)
