"""Settings shared by all tasks, and by tasks on texts or pairs."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, get_args

from pydantic import Field, create_model, model_validator

from bertkit.base.errors import SettingsError
from bertkit.base.settings import NO_FLAG, WITHOUT_FLAG, Count, Settings
from bertkit.tokenization.long_texts import MAX_WINDOWS, LongTextSettings

LEAST_WINDOW = 8  # tokens: [CLS], two [SEP], and at least two of each text

TOP_K = "Number of results, best first."
PoolingName = Literal["cls", "mean", "max"]
DEFAULT = "y default"  # as descriptions of columns begin what they say of it
POOLINGS: tuple[PoolingName, ...] = get_args(PoolingName)
OF_ONE_LABEL = ("accuracy", "f1", "macro_f1", "matthews")
OF_MANY_LABELS = ("micro_f1", "macro_f1", "subset_accuracy")
Metric = Literal[
    "auto", "loss", "accuracy", "f1", "macro_f1", "matthews", "micro_f1", "subset_accuracy"
]
METRIC_HELP = (
    "Metric of the held-out data that selects the best model: auto, the one of the task; loss; of"
    f" classify also {', '.join(OF_ONE_LABEL)}, with several labels {', '.join(OF_MANY_LABELS)}."
)
TextColumn = Annotated[
    str | None,
    Field(
        description="Column, or field of JSON, of the texts; of pairs the first, of queries and"
        " passages the query (usually query), of tagged data the words (of CoNLL its number,"
        " from 1). By default text, another usual name, or the only column of texts."
    ),
]
PairColumn = Annotated[
    str | None,
    Field(
        description="Column, or field of JSON, of the second text of each pair, or of the passage;"
        " by default the usual name that belongs to that of the first, if --text-column isn't"
        " given."
    ),
]
LabelColumn = Annotated[
    str | None,
    Field(
        description="Column, or field of JSON, of what is learned: the label, the number, the score"
        " of a pair, the tags (of CoNLL its number, from 1), the answers, or the correct choice, as"
        " its text or its number from 0. By default label, another usual name, or the only"
        " column of few values (of numbers, to learn a number)."
    ),
]
QuestionColumn = Annotated[
    str | None,
    Field(
        description="Column, or field of JSON, of the question, or of the beginning that each"
        " choice continues; by default question, or another usual name."
    ),
]
ContextColumn = Annotated[
    str | None,
    Field(
        description="Column, or field of JSON, of the context; by default context, or another usual"
        " name."
    ),
]


USUAL_PAIRS = (  # first and second text in GLUE, related data sets and their copies on the Hub
    ("text", "text_pair"),
    ("text", "pair"),
    ("premise", "hypothesis"),
    ("sentence1", "sentence2"),
    ("question1", "question2"),
    ("question", "sentence"),
    ("text1", "text2"),
    ("query", "passage"),
    ("query", "document"),
)
USUAL_TEXT = ("text", "sentence", *(first for first, _ in USUAL_PAIRS))
# Two texts whose similarity has a score, beside queries and passages.
PAIRED = (
    ("sentence1", "sentence2"),
    ("sentence_1", "sentence_2"),
    ("sentence_A", "sentence_B"),
    ("text1", "text2"),
    ("question1", "question2"),
    ("premise", "hypothesis"),
    ("text", "text_pair"),
    ("text", "pair"),
)


class TaskSettings(Settings):
    """Settings of a task: they belong to the model, and are stored with it."""

    max_length: Annotated[int, Field(ge=3)] = Field(
        default=128, description="Maximum tokens of a text or window, with special tokens."
    )
    metric: Metric = Field(default="auto", description=METRIC_HELP)
    metrics: ClassVar[tuple[str, ...]] = ("auto", "loss")
    usual_columns: ClassVar[Mapping[str, tuple[str, ...]]] = {}  # names by role, such as label

    @model_validator(mode="after")
    def _metric_is_the_tasks(self) -> Self:
        if self.metric not in self.metrics:
            raise ValueError(f"`metric` {self.metric} isn't one of {', '.join(self.metrics)}")
        return self

    @property
    def most_tokens(self) -> int:
        """The most tokens that are read of an example."""
        return self.max_length

    def choose_metric(self, labels: Sequence[str] = ()) -> str:
        """Return the metric that selects the best epoch of a task with labels; higher is better."""
        del labels
        return "accuracy"


class TextSettings(LongTextSettings, TaskSettings):
    """Columns of texts, and what becomes of those that are too long."""

    text_column: TextColumn = None
    pair_column: PairColumn = None
    pairs: Annotated[bool | None, NO_FLAG] = Field(
        default=None,
        description="Whether every example has a second text; by default, detected from the"
        " training data. The model then always requires pairs, or refuses them.",
    )
    pooling: PoolingName | None = Field(
        default=None,
        description="What represents a text: cls, its first token, as in the paper; or the mean or"
        " the maximum of its tokens, which transformers refuses to load and sentence-transformers"
        " loads. By default as the folder of a sentence encoder says, else cls.",
    )

    usual_columns: ClassVar[Mapping[str, tuple[str, ...]]] = {"text": USUAL_TEXT}
    learns_numbers: ClassVar[bool] = False

    @property
    def separator(self) -> str | None:
        """What is between several labels in a cell; None if a cell has one."""
        return None

    @model_validator(mode="after")
    def _windows_have_room(self) -> Self:
        if self.long_texts == "windows" and self.max_length < LEAST_WINDOW:
            raise ValueError(
                f"`max_length` ({self.max_length}) must be at least {LEAST_WINDOW} for windows"
            )
        return self

    @property
    def most_tokens(self) -> int:
        """The most tokens that are read of a text or pair, in windows if it is long."""
        return self.max_length * (MAX_WINDOWS if self.long_texts == "windows" else 1)


class MiningSettings(TaskSettings):
    """Where the negatives of a query come from: passages that don't answer it."""

    negatives: Literal["file", "mine"] | None = Field(
        default=None,
        description="Source of passages that don't answer a query: file, the data alone; mine, also"
        " passages of other rows, those that an encoder finds most similar to the query. By default"
        " file, and for rerank mine if the data have none.",
    )
    num_negatives: Annotated[Count | None, NO_FLAG] = Field(
        default=None,
        description="Number of negatives that are mined for each row; by default 1, and for rerank"
        " 7 for each query.",
    )
    negative_margin: Annotated[float, NO_FLAG, Field(ge=0.0, lt=1.0)] = Field(
        default=0.05,
        description="A passage is a negative if its cosine is at least this share lower than that"
        " of the query's own passage; closer ones may answer it, too.",
    )
    negative_ranks: Annotated[tuple[Count, Count], NO_FLAG] = Field(
        default=(1, 100),
        description="First and last rank, among the passages most similar to a query without its"
        " own, that negatives are chosen from.",
    )

    ranks_candidates: ClassVar[bool] = False  # what is learned is to rank the passages found

    @model_validator(mode="after")
    def _ranks_ascend(self) -> Self:
        first, last = self.negative_ranks
        if first > last:
            raise ValueError(f"`negative_ranks` begin at {first} and end at {last}")
        return self


class PairedSettings(TaskSettings):
    """Columns of queries and passages, or of two texts and a score."""

    text_column: TextColumn = None
    pair_column: PairColumn = None
    label_column: LabelColumn = None
    negative_column: Annotated[str | None, NO_FLAG] = Field(
        default=None,
        description="Column of passages that don't answer the query, a text or a list; by default"
        " negative, negative_1 and the like.",
    )

    usual_columns: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "text": ("query", "anchor", "question", *(first for first, _ in PAIRED)),
        "pair": (
            *("passage", "positive", "pos", "document", "answer", "response", "context"),
            *(other for _, other in PAIRED),
        ),
    }


SettingsKind = TypeVar("SettingsKind", bound=TaskSettings)


def choose_columns(*kinds: type[TaskSettings], has_labels: bool = True) -> type[Settings]:
    """Build a settings class with the columns of data for a model, all of them optional."""
    fields: dict[str, Any] = {}
    for kind in kinds:
        for name, info in kind.model_fields.items():
            is_column = name.endswith("_column") and (has_labels or name != "label_column")
            if is_column and name not in WITHOUT_FLAG and info.annotation is not None:
                text = (info.description or "").replace(
                    DEFAULT, f"{DEFAULT} that of training, else"
                )
                fields[name] = (info.annotation | None, Field(default=None, description=text))
    return create_model("Columns", __base__=Settings, **fields)


def with_columns(settings: SettingsKind, columns: Settings) -> SettingsKind:
    """Return a model's settings with the column names of another file."""
    given = columns.model_dump(exclude_none=True)
    foreign = sorted(given.keys() - type(settings).model_fields.keys())
    if foreign:
        raise SettingsError(f"this task has no {', '.join(foreign)}; leave it out")
    return settings.model_copy(update=given)


class TaskInputs(Settings):
    """Flags of `bertkit <task>` that are inputs, beside the words; here none is."""

    words: ClassVar[str] = "Texts"  # what they are, for `--help`
    example: ClassVar[str] = '"A gripping film."'  # words and flags of a call, for `--help`
    example_file: ClassVar[str] = "texts.txt"  # a file's name, for `--help`

    def gather(self, words: Sequence[str]) -> list[Any]:
        """Return inputs as the task's `make_example` takes them, in the order of the words."""
        return list(words)


class PairInputs(TaskInputs):
    """A text, or each of several, perhaps with a second one."""

    pair: str | None = Field(default=None, description="Second text, for models of text pairs.")

    def gather(self, words: Sequence[str]) -> list[Any]:
        """Return texts, or tuples of two."""
        return list(words) if self.pair is None else [(word, self.pair) for word in words]


class ExplainAnswers(Settings):
    """Whether predictions are explained."""

    explain: bool = Field(
        default=False,
        description="Show the words that decided, each with its weight: what the prediction loses"
        " without the word.",
    )


def does_explain(options: Settings) -> bool:
    """Tell whether options ask for explanations."""
    return isinstance(options, ExplainAnswers) and options.explain
