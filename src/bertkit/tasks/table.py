"""The table of all tasks, with the facts about each that need neither torch nor its code."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from bertkit.base.wings import load_object

if TYPE_CHECKING:
    from bertkit.base.settings import Settings
    from bertkit.tasks.settings import TaskInputs, TaskSettings
    from bertkit.tasks.task import AnyTask

NO_SETTINGS = "bertkit.base.settings:Settings"


@dataclass(frozen=True)
class TaskEntry:
    """Facts about a task that are known before its code is loaded; addresses are `module:Class`."""

    settings_home: str  # address of its settings
    summary: str  # one sentence for `--help`
    home: str  # its address
    inputs_home: str = "bertkit.tasks.settings:TaskInputs"  # those of its command
    example_data: str = ".csv"  # suffix of labeled files in examples of commands
    pipeline_tag: str | None = None  # the task's name on the Hub
    answers_home: str = NO_SETTINGS  # of the settings of what a prediction gives
    has_command: bool = True  # whether `bertkit <task>` is made of the entry; else it has its own
    zero_shot_home: str = NO_SETTINGS  # the same of labels that no model has learned

    @cached_property
    def settings(self) -> "type[TaskSettings]":
        """The class of its settings."""
        kind: type[TaskSettings] = load_object(self.settings_home)
        return kind

    @cached_property
    def inputs(self) -> "type[TaskInputs]":
        """The class of the inputs of its command."""
        kind: type[TaskInputs] = load_object(self.inputs_home)
        return kind

    @cached_property
    def answers(self) -> "type[Settings]":
        """The class of the settings of what a prediction gives."""
        kind: type[Settings] = load_object(self.answers_home)
        return kind

    @cached_property
    def zero_shot(self) -> "type[Settings]":
        """The class of the settings of labels that no model has learned."""
        kind: type[Settings] = load_object(self.zero_shot_home)
        return kind

    def load(self) -> "type[AnyTask]":
        """Import and return the task's class."""
        kind: type[AnyTask] = load_object(self.home)
        return kind


TASKS: Mapping[str, TaskEntry] = {
    "classify": TaskEntry(
        "bertkit.tasks.classify:ClassifySettings",
        "Classify texts, or pairs of texts.",
        "bertkit.tasks.classify.task:Classify",
        "bertkit.tasks.settings:PairInputs",
        pipeline_tag="text-classification",
        answers_home="bertkit.tasks.classify:ClassifyAnswers",
        zero_shot_home="bertkit.tasks.classify:NamedZeroShot",
    ),
    "regress": TaskEntry(
        "bertkit.tasks.regress:RegressSettings",
        "Predict a number for texts, or pairs of texts.",
        "bertkit.tasks.regress.task:Regress",
        "bertkit.tasks.settings:PairInputs",
        pipeline_tag="text-classification",
        answers_home="bertkit.tasks.settings:ExplainAnswers",
    ),
    "tag": TaskEntry(
        "bertkit.tasks.tag:TagSettings",
        "Tag each word: named entities, parts of speech.",
        "bertkit.tasks.tag.task:Tag",
        example_data=".conll",
        pipeline_tag="token-classification",
        answers_home="bertkit.tasks.settings:ExplainAnswers",
    ),
    "answer": TaskEntry(
        "bertkit.tasks.answer:AnswerSettings",
        "Answer questions with a span of a text.",
        "bertkit.tasks.answer.task:AnswerQuestions",
        "bertkit.tasks.answer:AnswerInputs",
        ".json",
        "question-answering",
        answers_home="bertkit.tasks.settings:ExplainAnswers",
    ),
    "choose": TaskEntry(
        "bertkit.tasks.choose:ChooseSettings",
        "Choose among answers or endings (multiple choice).",
        "bertkit.tasks.choose.task:Choose",
        "bertkit.tasks.choose:ChooseInputs",
        ".jsonl",
        "multiple-choice",
    ),
    "embed": TaskEntry(
        "bertkit.tasks.embed:EmbeddingSettings",
        "Compute vectors of texts, to search and compare them.",
        "bertkit.tasks.embed.task:Embed",
        pipeline_tag="sentence-similarity",
        has_command=False,
    ),
    "rerank": TaskEntry(
        "bertkit.tasks.rerank:RerankSettings",
        "Order passages by how well they answer a query.",
        "bertkit.tasks.rerank.task:Rerank",
        pipeline_tag="text-ranking",
        has_command=False,
    ),
}
