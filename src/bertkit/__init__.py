"""bertkit: BERT from raw text and pre-training to fine-tuned models and embeddings.

The public names are loaded when they are first used, so that `import bertkit` (and with it
`bertkit --help`) doesn't load torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bertkit._version import __version__

if TYPE_CHECKING:
    from bertkit.api.language import fill_mask as fill_mask
    from bertkit.api.language import generate as generate
    from bertkit.api.language import next_sentence as next_sentence
    from bertkit.api.language import score as score
    from bertkit.api.language import summarize as summarize
    from bertkit.api.language import translate as translate
    from bertkit.api.models import export as export
    from bertkit.api.models import inspect as inspect
    from bertkit.api.models import report as report
    from bertkit.api.training import benchmark_pretrain as benchmark_pretrain
    from bertkit.api.training import finetune as finetune
    from bertkit.api.training import prepare as prepare
    from bertkit.api.training import pretrain as pretrain
    from bertkit.api.training import train_tokenizer as train_tokenizer
    from bertkit.api.vectors import embed as embed
    from bertkit.api.vectors import evaluate as evaluate
    from bertkit.api.vectors import predict as predict
    from bertkit.api.vectors import search as search
    from bertkit.api.vectors import similarity as similarity
    from bertkit.api.vectors import view as view
    from bertkit.base.errors import BertkitError as BertkitError
    from bertkit.inference.embeddings.embedder import Embedder as Embedder
    from bertkit.inference.embeddings.features import FeatureExtractor as FeatureExtractor
    from bertkit.inference.embeddings.settings import EmbedderSettings as EmbedderSettings
    from bertkit.inference.embeddings.word_vectors import WordVectors as WordVectors
    from bertkit.inference.fill_mask import FillMask as FillMask
    from bertkit.inference.generation.extractive import CentralSummarizer as CentralSummarizer
    from bertkit.inference.generation.generator import Generator as Generator
    from bertkit.inference.generation.seq2seq_generator import Translator as Translator
    from bertkit.inference.generation.settings import GeneratorSettings as GeneratorSettings
    from bertkit.inference.next_sentence import NextSentence as NextSentence
    from bertkit.inference.predictor import Answerer as Answerer
    from bertkit.inference.predictor import Chooser as Chooser
    from bertkit.inference.predictor import Classifier as Classifier
    from bertkit.inference.predictor import Predictor as Predictor
    from bertkit.inference.predictor import Regressor as Regressor
    from bertkit.inference.predictor import Tagger as Tagger
    from bertkit.inference.text_scorer import TextScorer as TextScorer
    from bertkit.interpret.attention_view import AttentionView as AttentionView
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
    from bertkit.models.seq2seq.config import EncoderDecoderConfig as EncoderDecoderConfig
    from bertkit.models.seq2seq.model import EncoderDecoderModel as EncoderDecoderModel
    from bertkit.retrieval.search_index import SearchIndex as SearchIndex
    from bertkit.retrieval.settings import SearchSettings as SearchSettings
    from bertkit.retrieval.vector_index import VectorIndex as VectorIndex
    from bertkit.tokenization.tokenizer import Tokenizer as Tokenizer

_HOMES = {
    "Answerer": "bertkit.inference.predictor",
    "AttentionView": "bertkit.interpret.attention_view",
    "BertConfig": "bertkit.models.bert.config",
    "BertForPreTraining": "bertkit.models.bert.heads",
    "BertForMaskedLM": "bertkit.models.bert.heads",
    "BertForMultipleChoice": "bertkit.models.bert.fine_tuning",
    "BertForNextSentencePrediction": "bertkit.models.bert.heads",
    "BertForQuestionAnswering": "bertkit.models.bert.fine_tuning",
    "BertForSequenceClassification": "bertkit.models.bert.fine_tuning",
    "BertForTokenClassification": "bertkit.models.bert.fine_tuning",
    "BertLMHeadModel": "bertkit.models.bert.heads",
    "BertModel": "bertkit.models.bert.encoder",
    "BertkitError": "bertkit.base.errors",
    "CentralSummarizer": "bertkit.inference.generation.extractive",
    "Chooser": "bertkit.inference.predictor",
    "Classifier": "bertkit.inference.predictor",
    "Embedder": "bertkit.inference.embeddings.embedder",
    "EmbedderSettings": "bertkit.inference.embeddings.settings",
    "EncoderDecoderConfig": "bertkit.models.seq2seq.config",
    "EncoderDecoderModel": "bertkit.models.seq2seq.model",
    "FeatureExtractor": "bertkit.inference.embeddings.features",
    "FillMask": "bertkit.inference.fill_mask",
    "Generator": "bertkit.inference.generation.generator",
    "GeneratorSettings": "bertkit.inference.generation.settings",
    "NextSentence": "bertkit.inference.next_sentence",
    "Predictor": "bertkit.inference.predictor",
    "Regressor": "bertkit.inference.predictor",
    "SearchIndex": "bertkit.retrieval.search_index",
    "SearchSettings": "bertkit.retrieval.settings",
    "Tagger": "bertkit.inference.predictor",
    "TextScorer": "bertkit.inference.text_scorer",
    "Tokenizer": "bertkit.tokenization.tokenizer",
    "Translator": "bertkit.inference.generation.seq2seq_generator",
    "VectorIndex": "bertkit.retrieval.vector_index",
    "ViewSettings": "bertkit.interpret.settings",
    "WordVectors": "bertkit.inference.embeddings.word_vectors",
    "view": "bertkit.api.vectors",
    "train_tokenizer": "bertkit.api.training",
    "pretrain": "bertkit.api.training",
    "prepare": "bertkit.api.training",
    "predict": "bertkit.api.vectors",
    "finetune": "bertkit.api.training",
    "evaluate": "bertkit.api.vectors",
    "translate": "bertkit.api.language",
    "summarize": "bertkit.api.language",
    "similarity": "bertkit.api.vectors",
    "search": "bertkit.api.vectors",
    "score": "bertkit.api.language",
    "report": "bertkit.api.models",
    "next_sentence": "bertkit.api.language",
    "inspect": "bertkit.api.models",
    "generate": "bertkit.api.language",
    "fill_mask": "bertkit.api.language",
    "export": "bertkit.api.models",
    "embed": "bertkit.api.vectors",
    "benchmark_pretrain": "bertkit.api.training",
}

__all__ = ["__version__", *_HOMES]  # noqa: PLE0604 - the table is the list


def __getattr__(name: str) -> Any:
    """Load a public name from its home (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module 'bertkit' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
