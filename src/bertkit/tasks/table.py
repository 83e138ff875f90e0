"""The table of all tasks, with the facts about each that don't need torch."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bertkit.base.settings import Settings
from bertkit.base.wings import load_object
from bertkit.tasks.answer import AnswerInputs, AnswerSettings
from bertkit.tasks.choose import ChooseInputs, ChooseSettings
from bertkit.tasks.classify import ClassifyAnswers, ClassifySettings, NamedZeroShot
from bertkit.tasks.embed import EmbeddingSettings
from bertkit.tasks.regress import RegressSettings
from bertkit.tasks.rerank import RerankSettings
from bertkit.tasks.settings import ExplainAnswers, PairInputs, TaskInputs, TaskSettings
from bertkit.tasks.tag import TagSettings

if TYPE_CHECKING:
    from bertkit.tasks.task import AnyTask


@dataclass(frozen=True)
class TaskEntry:
    """Facts about a task that are known before its code is loaded."""

    settings: type[TaskSettings]
    summary: str  # one sentence for `--help`
    home: str  # `module:Class`
    inputs: type[TaskInputs] = TaskInputs  # of its command
    example_data: str = ".csv"  # suffix of labeled files in examples of commands
    pipeline_tag: str | None = None  # the task's name on the Hub
    answers: type[Settings] = Settings  # class of the settings of what a prediction gives
    has_command: bool = True  # whether `bertkit <task>` is made of the entry; else it has its own
    zero_shot: type[Settings] = Settings  # the same of labels that no model has learned

    def load(self) -> "type[AnyTask]":
        """Import and return the task's class."""
        kind: type[AnyTask] = load_object(self.home)
        return kind


TASKS: Mapping[str, TaskEntry] = {
    "classify": TaskEntry(
        ClassifySettings,
        "Classify texts, or pairs of texts.",
        "bertkit.tasks.classify.task:Classify",
        PairInputs,
        pipeline_tag="text-classification",
        answers=ClassifyAnswers,
        zero_shot=NamedZeroShot,
    ),
    "regress": TaskEntry(
        RegressSettings,
        "Predict a number for texts, or pairs of texts.",
        "bertkit.tasks.regress.task:Regress",
        PairInputs,
        pipeline_tag="text-classification",
        answers=ExplainAnswers,
    ),
    "tag": TaskEntry(
        TagSettings,
        "Tag each word: named entities, parts of speech.",
        "bertkit.tasks.tag.task:Tag",
        example_data=".conll",
        pipeline_tag="token-classification",
        answers=ExplainAnswers,
    ),
    "answer": TaskEntry(
        AnswerSettings,
        "Answer questions with a span of a text.",
        "bertkit.tasks.answer.task:AnswerQuestions",
        AnswerInputs,
        ".json",
        "question-answering",
        ExplainAnswers,
    ),
    "choose": TaskEntry(
        ChooseSettings,
        "Choose among answers or endings (multiple choice).",
        "bertkit.tasks.choose.task:Choose",
        ChooseInputs,
        ".jsonl",
        "multiple-choice",
    ),
    "embed": TaskEntry(
        EmbeddingSettings,
        "Compute vectors of texts, to search and compare them.",
        "bertkit.tasks.embed.task:Embed",
        pipeline_tag="sentence-similarity",
        has_command=False,
    ),
    "rerank": TaskEntry(
        RerankSettings,
        "Order passages by how well they answer a query.",
        "bertkit.tasks.rerank.task:Rerank",
        pipeline_tag="text-ranking",
        has_command=False,
    ),
}
