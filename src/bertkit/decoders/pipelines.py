"""The pipelines of models that write: what opens a model for the server asks here first."""

from bertkit.decoders.generation.generator import Generator
from bertkit.decoders.generation.seq2seq_generator import Translator
from bertkit.decoders.generation.settings import read_seq2seq_file
from bertkit.decoders.generation.summarizer import AbstractiveSummarizer
from bertkit.decoders.text_scorer import LeftToRightScorer
from bertkit.inference.embeddings.settings import EmbedderSettings
from bertkit.inference.engines.torch_engine import choose_engine
from bertkit.inference.opening import Pipelines
from bertkit.inference.text_scorer import TextScorer
from bertkit.models.open_model import OpenModel


def load_pipelines(opened: OpenModel, settings: EmbedderSettings) -> Pipelines:
    """Load the pipelines of a model that writes; none of another model.

    What writes texts has no int8, and takes auto instead.
    """
    is_int8 = settings.precision == "int8"
    whole = settings.model_copy(update={"precision": "auto"} if is_int8 else {})
    if not opened.is_bert:
        kind = read_seq2seq_file(opened.folder).kind
        writer = Translator if kind == "translate" else AbstractiveSummarizer
        return {kind: writer.load(opened, whole)}
    if opened.is_sentence_encoder or opened.is_bidirectional or "masked_lm" not in opened.heads:
        return {}
    generator = Generator.load(opened, whole)
    if settings.precision == "bf16":  # the scorer's head isn't
        return {"generate": generator, "score": TextScorer.load(opened, settings)}
    model, precision = generator.loaded.model, settings.precision
    engine = choose_engine(settings.engine, model, precision=precision)
    return {"generate": generator, "score": LeftToRightScorer(generator.loaded, engine)}
