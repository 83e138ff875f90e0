"""What a model is for: all pipelines that its files and its heads allow."""

from typing import Any

from bertkit.base.wings import PIPELINES, list_installed, load_object
from bertkit.checkpoints.file_names import TASK_FILE
from bertkit.inference.embeddings.embedder import Embedder
from bertkit.inference.embeddings.settings import EmbedderSettings
from bertkit.inference.engines.choice import open_engine
from bertkit.inference.fill_mask import FillMask
from bertkit.inference.loading import LoadedModel
from bertkit.inference.next_sentence import NextSentence
from bertkit.inference.pipeline import Pipeline
from bertkit.inference.predictor import AnyPredictor, Predictor
from bertkit.inference.text_scorer import TextScorer
from bertkit.models.bert.architectures import MASKED_LM, PRE_TRAINING
from bertkit.models.open_model import OpenModel
from bertkit.tasks.saved import BY_ARCHITECTURE

Pipelines = dict[str, Pipeline[Any, Any]]  # by the name of what each does


def load_pipelines(opened: OpenModel, settings: EmbedderSettings) -> Pipelines:
    """Load all pipelines of a model, which share its weights; the first is what it is for."""
    settings = settings.model_copy(update={"revision": None})  # the model is open
    for address in list_installed(PIPELINES).values():
        found: Pipelines = load_object(address)(opened, settings)
        if found:
            return found
    if opened.is_sentence_encoder:
        return {"embed": Embedder.load(opened, settings)}
    if (opened.folder / TASK_FILE).exists() or opened.architecture in BY_ARCHITECTURE:
        predictor: AnyPredictor = Predictor.load(opened, settings)
        return {predictor.task.name: predictor}
    if "masked_lm" not in opened.heads:
        return {"embed": Embedder.load(opened, settings)}
    reads_pairs = "next_sentence" in opened.heads and "pooler" in opened.heads
    engine = open_engine(opened, settings, PRE_TRAINING if reads_pairs else MASKED_LM)
    loaded = LoadedModel.of(opened)
    pipelines: Pipelines = {
        "fill-mask": FillMask(loaded, engine),
        "score": TextScorer(loaded, engine),
    }
    return pipelines | ({"next-sentence": NextSentence(loaded, engine)} if reads_pairs else {})
