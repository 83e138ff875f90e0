"""What a model of the server does: its pipelines, loaded, and changed as requests ask."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from pydantic import Field

from bertkit.base.errors import InputError
from bertkit.base.settings import Settings, select
from bertkit.checkpoints.file_names import TASK_FILE
from bertkit.inference.embeddings.embedder import Embedder, find_prompt
from bertkit.inference.embeddings.settings import EmbedderSettings
from bertkit.inference.fill_mask import MASK, FillMask
from bertkit.inference.generation.generator import Generator
from bertkit.inference.generation.seq2seq_generator import Translator
from bertkit.inference.generation.settings import read_seq2seq_file
from bertkit.inference.generation.summarizer import (
    AbstractiveSummarizer,
    TrainedSummarizer,
    is_extractor,
)
from bertkit.inference.loading import LoadedModel
from bertkit.inference.next_sentence import NextSentence
from bertkit.inference.pipeline import NamedInput, Pipeline, WindowSize, start_engine
from bertkit.inference.predictor import Predictor
from bertkit.inference.settings import EngineSettings, LoadingSettings
from bertkit.inference.stream import EncodedTexts
from bertkit.inference.text_scorer import TextScorer
from bertkit.models.bert.heads import BertForMaskedLM, BertForPreTraining
from bertkit.models.open_model import OpenModel
from bertkit.retrieval.search_index import Hit, SearchIndex
from bertkit.retrieval.settings import SearchSettings
from bertkit.serving.errors import Reason
from bertkit.serving.settings import ServeSettings
from bertkit.tasks.saved import BY_ARCHITECTURE

Pipelines = dict[str, Pipeline[Any, Any]]


def load_pipelines(opened: OpenModel, settings: ServeSettings) -> Pipelines:
    """Load the pipelines of a model, by the name of what each does; they share its weights."""
    engine, whole = select(EngineSettings, settings), select(LoadingSettings, settings)
    if opened.is_encoder_decoder:
        kind = read_seq2seq_file(opened.folder).kind
        writer = Translator if kind == "translate" else AbstractiveSummarizer
        return {kind: writer.load(opened, take_whole(whole))}
    if opened.is_sentence_encoder:
        return {"embed": load_embedder(opened, settings)}
    if opened.is_causal and "masked_lm" in opened.heads:
        generator = Generator.load(opened, take_whole(whole))
        return {"generate": generator, "score": TextScorer.load(opened, engine)}
    if is_extractor(opened.folder):
        return {"summarize": TrainedSummarizer.load(opened, engine)}
    if (opened.folder / TASK_FILE).exists() or opened.architecture in BY_ARCHITECTURE:
        predictor: Predictor[Any, Any, Any] = Predictor.load(opened, engine)
        return {predictor.task.name: predictor}
    if "masked_lm" in opened.heads:
        return load_pretrained(opened, engine)
    return {"embed": load_embedder(opened, settings)}


def load_pretrained(opened: OpenModel, settings: EngineSettings) -> Pipelines:
    """Load what the heads of pre-training do."""
    reads_pairs = "next_sentence" in opened.heads and "pooler" in opened.heads
    kind = BertForPreTraining if reads_pairs else BertForMaskedLM
    loaded: LoadedModel[Any] = LoadedModel.load(kind, opened, settings.device)
    engine = start_engine(loaded.model, settings)
    found: Pipelines = {
        "fill-mask": FillMask(loaded, engine),
        "score": TextScorer(loaded, engine),
    }
    return found | ({"next-sentence": NextSentence(loaded, engine)} if reads_pairs else {})


def load_embedder(opened: OpenModel, settings: ServeSettings) -> Embedder:
    """Load an embedder."""
    return Embedder.load(opened, select(EmbedderSettings, settings))


def take_whole(settings: LoadingSettings) -> LoadingSettings:
    """Return the settings of a model that no engine runs, for which int8 isn't meant."""
    return settings.model_copy(update={"precision": "auto"} if settings.precision == "int8" else {})


MAX_HITS = 1000  # of a query
MAX_FOUND, MAX_CANDIDATES = 10_000, 100_000  # of all queries, and of all [MASK]s, of a request
USUAL_TOKENS = 64  # that are written for a text where nothing limits them
MAX_ROWS = 16  # sequences that are written at a time for a text


class SearchOptions(Settings):
    """What is told of each query."""

    top_k: int = Field(default=5, ge=1, le=MAX_HITS, description="Number of texts.")


@dataclass(frozen=True)
class Searcher(Pipeline[str, list[Hit]]):
    """Finds texts of a corpus by their meaning."""

    index: SearchIndex
    options: SearchOptions = field(default_factory=SearchOptions)

    @classmethod
    def build(cls, opened: OpenModel, loading: SearchSettings, corpus: str = "") -> Self:
        """Open the index of a corpus, or build it."""
        return cls(SearchIndex.open(opened.path, corpus, loading))

    def encode_window(self, inputs: list[NamedInput]) -> EncodedTexts:
        """Encode queries."""
        for named in inputs:
            if not named.value.strip():
                raise InputError(f"{named.name} is empty; a query needs a word")
        return self.index.embedder.encode_window(inputs)

    def join_windows(self, windows: Sequence[EncodedTexts]) -> EncodedTexts:
        """Join encoded queries."""
        return self.index.embedder.join_windows(windows)

    def size(self, encoded: EncodedTexts) -> WindowSize:
        """Return the size of encoded queries."""
        return self.index.embedder.size(encoded)

    def compute_window(self, encoded: EncodedTexts) -> list[list[Hit]]:
        """Find the texts that are most similar to each query."""
        vectors = self.index.embedder.compute_window(encoded)
        return self.index.find(vectors, self.options.top_k)


def load_search(opened: OpenModel, corpus: str, settings: ServeSettings) -> Pipelines:
    """Load the index of a corpus, and the model of its vectors, which are shared."""
    search = Searcher.build(opened, select(SearchSettings, settings), corpus)
    embedder = search.index.embedder
    prompt = find_prompt(embedder.opened.sentences, embedder.settings)
    encoder = replace(embedder.text_encoder, prompt=prompt)
    return {"embed": replace(embedder, text_encoder=encoder), "search": search}


def count_written(compute: Any) -> int:
    """Return how many tokens are written for an input, at most; 0 by what doesn't write."""
    options: Any = getattr(compute, "options", None)
    if not hasattr(options, "max_tokens"):
        return 0
    num_rows: int = max(options.beams, options.num_answers)
    return num_rows * int(options.max_tokens or USUAL_TOKENS)


def check_size(pipeline: Pipeline[Any, Any], inputs: Sequence[Any]) -> None:
    """Refuse a request whose answer would take too much memory."""
    options: Any = pipeline.options
    num_rows = max(getattr(options, "beams", 1), getattr(options, "num_answers", 1))
    if num_rows > MAX_ROWS:
        raise Reason.UNREADABLE.error(
            f"a server takes at most {MAX_ROWS} beams and answers, and the request asks for"
            f" {num_rows:,}"
        )
    if isinstance(pipeline, FillMask):
        num_masks = sum(text.count(MASK) for text in inputs)
        check_results(options.top_k * num_masks, MAX_CANDIDATES, "words")
    if isinstance(pipeline, Searcher):
        check_results(options.top_k * len(inputs), MAX_FOUND, "texts")


def check_results(num: int, most: int, what: str) -> None:
    """Refuse a request for more results than a limit."""
    if num > most:
        raise Reason.UNREADABLE.error(
            f"the request asks for {num:,} {what} in all, and {most:,} is the limit; lower top_k or"
            " divide it"
        )


PAIRS, TEXTS = [("a", "b"), ("a b", "b")], ["a", "a b"]
# Inputs of different lengths, which start all threads of an engine.
SAMPLES: Mapping[str, list[Any]] = {
    "answer": [("a", "a b"), ("a", "a b a b")],
    "choose": [("a", ("a", "b")), ("a b", ("a b", "b"))],
    "fill-mask": ["a [MASK]", "a b [MASK]"],
    "next-sentence": PAIRS,
}


def warm_up(task: str, pipeline: Pipeline[Any, Any]) -> None:
    """Compute something, so that the first request is fast and a model that can't isn't served."""
    samples = SAMPLES.get(task, TEXTS)
    options = {"max_tokens": 2} if hasattr(pipeline.options, "max_tokens") else {}
    if isinstance(pipeline, Predictor) and getattr(pipeline.task.settings, "pairs", False):
        samples = PAIRS
    pipeline(samples, **options)
