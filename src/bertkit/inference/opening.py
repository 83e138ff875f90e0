"""What a model is for: all pipelines that its files and its heads allow."""

from typing import Any

from bertkit.checkpoints.file_names import TASK_FILE
from bertkit.decoders.generation.generator import Generator
from bertkit.decoders.generation.seq2seq_generator import Translator
from bertkit.decoders.generation.settings import read_seq2seq_file
from bertkit.decoders.generation.summarizer import AbstractiveSummarizer
from bertkit.inference.embeddings.embedder import Embedder
from bertkit.inference.embeddings.settings import EmbedderSettings
from bertkit.inference.fill_mask import FillMask
from bertkit.inference.loading import LoadedModel
from bertkit.inference.next_sentence import NextSentence
from bertkit.inference.pipeline import Pipeline, start_engine
from bertkit.inference.predictor import Predictor
from bertkit.inference.text_scorer import TextScorer
from bertkit.models.bert.heads import BertForMaskedLM, BertForPreTraining
from bertkit.models.open_model import OpenModel
from bertkit.tasks.saved import BY_ARCHITECTURE

Pipelines = dict[str, Pipeline[Any, Any]]  # by the name of what each does


def load_pipelines(opened: OpenModel, settings: EmbedderSettings) -> Pipelines:
    """Load all pipelines of a model, which share its weights; the first is what it is for.

    What writes texts has no int8, and takes auto instead.
    """
    settings = settings.model_copy(update={"revision": None})  # the model is open
    is_int8 = settings.precision == "int8"
    whole = settings.model_copy(update={"precision": "auto"} if is_int8 else {})
    if opened.is_encoder_decoder:
        kind = read_seq2seq_file(opened.folder).kind
        writer = Translator if kind == "translate" else AbstractiveSummarizer
        return {kind: writer.load(opened, whole)}
    if opened.is_sentence_encoder:
        return {"embed": Embedder.load(opened, settings)}
    if opened.is_causal and "masked_lm" in opened.heads:
        generator = Generator.load(opened, whole)
        return {"generate": generator, "score": load_scorer(generator, opened, settings)}
    if (opened.folder / TASK_FILE).exists() or opened.architecture in BY_ARCHITECTURE:
        predictor: Predictor[Any, Any, Any] = Predictor.load(opened, settings)
        return {predictor.task.name: predictor}
    if "masked_lm" in opened.heads:
        return load_pretrained(opened, settings)
    return {"embed": Embedder.load(opened, settings)}


def load_scorer(generator: Generator, opened: OpenModel, settings: EmbedderSettings) -> TextScorer:
    """Return a scorer with the weights of a generator, unless those are bf16: its head isn't."""
    if settings.precision == "bf16":
        return TextScorer.load(opened, settings)
    return TextScorer(generator.loaded, start_engine(generator.loaded.model, settings))


def load_pretrained(opened: OpenModel, settings: EmbedderSettings) -> Pipelines:
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
