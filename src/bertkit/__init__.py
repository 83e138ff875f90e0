"""bertkit: BERT from raw text and pre-training to fine-tuned models and embeddings.

The public names are loaded when they are first used, so that `import bertkit` (and with it
`bertkit --help`) doesn't load torch.
"""

from typing import TYPE_CHECKING, Any

from bertkit._version import __version__
from bertkit.base.wings import list_installed, load_object

if TYPE_CHECKING:
    from bertkit.api.language import fill_mask as fill_mask
    from bertkit.api.language import next_sentence as next_sentence
    from bertkit.api.language import score as score
    from bertkit.api.models import export as export
    from bertkit.api.models import inspect as inspect
    from bertkit.api.models import report as report
    from bertkit.api.predictions import classify as classify
    from bertkit.api.predictions import evaluate as evaluate
    from bertkit.api.predictions import predict as predict
    from bertkit.api.predictions import rerank as rerank
    from bertkit.api.preparation import prepare as prepare
    from bertkit.api.preparation import train_tokenizer as train_tokenizer
    from bertkit.api.review import review as review
    from bertkit.api.training import finetune as finetune
    from bertkit.api.training import pretrain as pretrain
    from bertkit.api.vectors import embed as embed
    from bertkit.api.vectors import search as search
    from bertkit.api.vectors import similarity as similarity
    from bertkit.base.errors import BertkitError as BertkitError
    from bertkit.decoders.config import EncoderDecoderConfig as EncoderDecoderConfig
    from bertkit.decoders.functions import generate as generate
    from bertkit.decoders.functions import translate as translate
    from bertkit.decoders.generation.extractive import CentralSummarizer as CentralSummarizer
    from bertkit.decoders.generation.generator import Generator as Generator
    from bertkit.decoders.generation.seq2seq_generator import Translator as Translator
    from bertkit.decoders.generation.settings import GeneratorSettings as GeneratorSettings
    from bertkit.decoders.model import EncoderDecoderModel as EncoderDecoderModel
    from bertkit.decoders.summaries import summarize as summarize
    from bertkit.inference.embeddings.embedder import Embedder as Embedder
    from bertkit.inference.embeddings.features import FeatureExtractor as FeatureExtractor
    from bertkit.inference.embeddings.settings import EmbedderSettings as EmbedderSettings
    from bertkit.inference.embeddings.word_vectors import WordVectors as WordVectors
    from bertkit.inference.fill_mask import FillMask as FillMask
    from bertkit.inference.next_sentence import NextSentence as NextSentence
    from bertkit.inference.predictor import Answerer as Answerer
    from bertkit.inference.predictor import Chooser as Chooser
    from bertkit.inference.predictor import Classifier as Classifier
    from bertkit.inference.predictor import Predictor as Predictor
    from bertkit.inference.predictor import Regressor as Regressor
    from bertkit.inference.predictor import Tagger as Tagger
    from bertkit.inference.reranker import Reranker as Reranker
    from bertkit.inference.text_scorer import TextScorer as TextScorer
    from bertkit.interpret.ablation import ablate as ablate
    from bertkit.interpret.attention_view import AttentionView as AttentionView
    from bertkit.interpret.contexts import compare_contexts as compare_contexts
    from bertkit.interpret.functions import view as view
    from bertkit.interpret.geometry import nearest_by_layer as nearest_by_layer
    from bertkit.interpret.geometry import project as project
    from bertkit.interpret.head_predictions import find_outcome as find_outcome
    from bertkit.interpret.inspected_model import InspectedModel as InspectedModel
    from bertkit.interpret.settings import ViewSettings as ViewSettings
    from bertkit.models.bert.config import BertConfig as BertConfig
    from bertkit.models.bert.encoder import BertModel as BertModel
    from bertkit.models.bert.fine_tuning import BertForMultipleChoice as BertForMultipleChoice
    from bertkit.models.bert.fine_tuning import BertForQuestionAnswering as BertForQuestionAnswering
    from bertkit.models.bert.fine_tuning import (
        BertForSequenceClassification as BertForSequenceClassification,
    )
    from bertkit.models.bert.fine_tuning import (
        BertForTokenClassification as BertForTokenClassification,
    )
    from bertkit.models.bert.heads import BertForMaskedLM as BertForMaskedLM
    from bertkit.models.bert.heads import (
        BertForNextSentencePrediction as BertForNextSentencePrediction,
    )
    from bertkit.models.bert.heads import BertForPreTraining as BertForPreTraining
    from bertkit.models.bert.heads import BertLMHeadModel as BertLMHeadModel
    from bertkit.retrieval.index import Index as Index
    from bertkit.retrieval.settings import IndexSettings as IndexSettings
    from bertkit.retrieval.vector_index import VectorIndex as VectorIndex
    from bertkit.tokenization.tokenizer import Tokenizer as Tokenizer

# The public names of each module, which is imported when one of them is first used.
_NAMES = {
    "bertkit.api.language": "fill_mask next_sentence score",
    "bertkit.api.models": "export inspect report",
    "bertkit.api.preparation": "prepare train_tokenizer",
    "bertkit.api.training": "finetune pretrain",
    "bertkit.api.predictions": "classify evaluate predict rerank",
    "bertkit.api.review": "review",
    "bertkit.api.vectors": "embed search similarity",
    "bertkit.base.errors": "BertkitError",
    "bertkit.inference.embeddings.embedder": "Embedder",
    "bertkit.inference.embeddings.features": "FeatureExtractor",
    "bertkit.inference.embeddings.settings": "EmbedderSettings",
    "bertkit.inference.embeddings.word_vectors": "WordVectors",
    "bertkit.inference.fill_mask": "FillMask",
    "bertkit.decoders.functions": "generate translate",
    "bertkit.decoders.summaries": "summarize",
    "bertkit.decoders.generation.extractive": "CentralSummarizer",
    "bertkit.decoders.generation.generator": "Generator",
    "bertkit.decoders.generation.seq2seq_generator": "Translator",
    "bertkit.decoders.generation.settings": "GeneratorSettings",
    "bertkit.inference.next_sentence": "NextSentence",
    "bertkit.inference.predictor": "Answerer Chooser Classifier Predictor Regressor Tagger",
    "bertkit.inference.reranker": "Reranker",
    "bertkit.inference.text_scorer": "TextScorer",
    "bertkit.interpret.ablation": "ablate",
    "bertkit.interpret.attention_view": "AttentionView",
    "bertkit.interpret.contexts": "compare_contexts",
    "bertkit.interpret.functions": "view",
    "bertkit.interpret.geometry": "nearest_by_layer project",
    "bertkit.interpret.head_predictions": "find_outcome",
    "bertkit.interpret.inspected_model": "InspectedModel",
    "bertkit.interpret.settings": "ViewSettings",
    "bertkit.models.bert.config": "BertConfig",
    "bertkit.models.bert.encoder": "BertModel",
    "bertkit.models.bert.fine_tuning": "BertForMultipleChoice BertForQuestionAnswering"
    " BertForSequenceClassification BertForTokenClassification",
    "bertkit.models.bert.heads": "BertForMaskedLM BertForNextSentencePrediction BertForPreTraining"
    " BertLMHeadModel",
    "bertkit.decoders.config": "EncoderDecoderConfig",
    "bertkit.decoders.model": "EncoderDecoderModel",
    "bertkit.retrieval.index": "Index",
    "bertkit.retrieval.settings": "IndexSettings",
    "bertkit.retrieval.vector_index": "VectorIndex",
    "bertkit.tokenization.tokenizer": "Tokenizer",
}
_OF_TASKS = "bertkit.predict(model, rows), or call what bertkit.finetune or Predictor.load returns"
# What to write instead of a command's name that is no function.
_INSTEAD = {
    **dict.fromkeys(("answer", "choose", "regress", "tag"), _OF_TASKS),
    "attention": "bertkit.view(text)",
    "index": "bertkit.Index(path)",
    "features": "bertkit.FeatureExtractor.load(model)(texts)",
    "nearest": "bertkit.WordVectors.load(model).nearest(word)",
    **{name: f"the command `bertkit {name}`" for name in ("convert", "devices", "serve")},
}
_HOMES = {name: f"{home}:{name}" for home, names in _NAMES.items() for name in names.split()}

__all__ = ["__version__", *list_installed(_HOMES)]  # noqa: PLE0604 - the table is the list


def __getattr__(name: str) -> Any:
    """Load a public name from its home (PEP 562); a deleted wing raises MissingExtraError."""
    if name not in _HOMES:
        hint = f"; use {_INSTEAD[name]}" if name in _INSTEAD else ""
        raise AttributeError(f"module 'bertkit' has no attribute {name!r}{hint}")
    return load_object(_HOMES[name])


def __dir__() -> list[str]:
    return sorted(__all__)
