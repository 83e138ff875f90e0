"""The pipelines of models that write: what opens a model for the server asks here first.

PyTorch, which writes texts, is loaded for such a model alone.
"""

from bertkit.base.extras import require_torch
from bertkit.inference.embeddings.settings import EmbedderSettings
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
        return load_writer(opened, whole)
    if opened.is_sentence_encoder or opened.is_bidirectional or "masked_lm" not in opened.heads:
        return {}
    require_torch("a model that continues texts")
    from bertkit.decoders.generation.generator import Generator
    from bertkit.decoders.text_scorer import LeftToRightScorer
    from bertkit.inference.engines.torch_engine import choose_engine

    generator = Generator.load(opened, whole)
    if settings.precision == "bf16":  # the scorer's head isn't
        return {"generate": generator, "score": TextScorer.load(opened, settings)}
    model, precision = generator.loaded.model, settings.precision
    engine = choose_engine(settings.engine, model, precision=precision)
    return {"generate": generator, "score": LeftToRightScorer(generator.loaded, engine)}


def load_writer(opened: OpenModel, settings: EmbedderSettings) -> Pipelines:
    """Load what an encoder-decoder is for."""
    require_torch("a model that writes texts")
    from bertkit.decoders.generation.abstractive import AbstractiveSummarizer
    from bertkit.decoders.generation.seq2seq_generator import Translator
    from bertkit.decoders.generation.settings import read_seq2seq_file

    kind = read_seq2seq_file(opened.folder).kind
    writer = Translator if kind == "translate" else AbstractiveSummarizer
    return {kind: writer.load(opened, settings)}
