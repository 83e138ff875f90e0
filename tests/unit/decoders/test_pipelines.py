"""All that turns texts into results is loaded, called and streamed in one way."""

import numpy as np
import pandas as pd
import pytest
from tests.closeness import close
from tests.unit.decoders.small_rewriter import save_rewriter
from tests.unit.inference.small_causal import save_causal
from tests.unit.inference.test_pickling import copy_pickled

from bertkit.base.errors import InputError, SettingsError
from bertkit.decoders.generation.extractive import CentralSummarizer
from bertkit.decoders.generation.generator import Generator
from bertkit.decoders.generation.seq2seq_generator import Seq2SeqGenerator
from bertkit.inference.embeddings.embedder import Embedder
from bertkit.inference.embeddings.features import FeatureExtractor
from bertkit.inference.embeddings.word_vectors import WordVectors
from bertkit.inference.fill_mask import FillMask
from bertkit.inference.next_sentence import NextSentence
from bertkit.inference.pipeline import NamedInput
from bertkit.inference.predictor import Predictor
from bertkit.inference.text_scorer import TextScorer

KINDS = [
    FillMask,
    NextSentence,
    TextScorer,
    Predictor,
    Embedder,
    FeatureExtractor,
    WordVectors,
    Generator,
    Seq2SeqGenerator,
    CentralSummarizer,
]
TEXTS = ["the [MASK] saw", "a [MASK]"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_argument_of_loading_names_the_right_ones(kind, small_folder):
    with pytest.raises(
        SettingsError, match=r"load: precision must be .*'fp32', 'bf16' or 'int8', got 'float32'"
    ):
        kind.load(small_folder, precision="float32")
    with pytest.raises(SettingsError, match=r"load: engine must be .*'torch' or 'openvino'"):
        kind.load(small_folder, engine="tensorrt")
    with pytest.raises(SettingsError, match=r"load: settings are .*Settings, and not 'cpu'"):
        kind.load(small_folder, "cpu")
    with pytest.raises(SettingsError, match="has no setting devise; it has device"):
        kind.load(small_folder, devise="cpu")
    with pytest.raises(SettingsError, match=r"a model is a folder .* and not Series"):
        kind.load(pd.Series([str(small_folder)]))


@pytest.mark.parametrize("kind", [Predictor, Generator, Seq2SeqGenerator])
def test_what_comes_with_no_model_needs_one(kind):
    with pytest.raises(SettingsError, match="comes without a model; name one"):
        kind.load()


@pytest.mark.parametrize(
    ("kind", "save"), [(Generator, save_causal), (Seq2SeqGenerator, save_rewriter)]
)
def test_a_model_that_writes_has_no_engine_and_no_integers(kind, save, tmp_path):
    save(tmp_path)
    with pytest.raises(SettingsError, match="the engine openvino is for encoders"):
        kind.load(tmp_path, engine="openvino")
    with pytest.raises(SettingsError, match="int8 is for encoders"):
        kind.load(tmp_path, device="cpu", precision="int8")


@pytest.mark.parametrize(
    "kind", [TextScorer, Embedder, CentralSummarizer, FeatureExtractor, FillMask]
)
def test_one_input_gives_a_result_and_several_a_list(kind, small_folder):
    pipeline = kind.load(small_folder, device="cpu")
    expected = pipeline(TEXTS)
    assert len(expected) == len(TEXTS)
    for inputs in (np.array(TEXTS, dtype=object), pd.Series(TEXTS), iter(TEXTS)):
        assert len(pipeline(inputs)) == len(TEXTS)
    assert len(list(pipeline.stream(iter(TEXTS)))) == len(TEXTS)
    assert type(pipeline(TEXTS[0])) is type(next(pipeline.stream(TEXTS)))
    for wrong in (pd.DataFrame({"text": TEXTS}), set(TEXTS)):
        with pytest.raises(InputError, match="expected a list, got"):
            pipeline(wrong)
    for wrong in (None, 5, b"the", [None], [TEXTS[1], 3], iter([b"a"])):
        with pytest.raises(InputError, match="expected a text, got"):
            pipeline(wrong)
    for wrong, name in (("the cat", "one text; put it into"), (5, "int"), (None, "NoneType")):
        with pytest.raises(InputError, match=f"expected a list of texts, got {name}"):
            pipeline.stream(wrong)
    with pytest.raises(SettingsError, match="has no setting top; it has"):
        pipeline(TEXTS, top=3)


def test_a_left_to_right_model_can_be_copied_after_use(causal_folder):
    scorer, generator = TextScorer.load(causal_folder), Generator.load(causal_folder)
    expected = scorer("the cat").log_probability, generator("the cat").text
    scorer, generator = copy_pickled((scorer, generator))
    assert scorer("the cat").log_probability == close(expected[0], "float32")
    assert generator("the cat").text == expected[1]


def test_options_of_a_call_are_for_this_call(tmp_path):
    save_causal(tmp_path, end_bias=-100.0)
    generate = Generator.load(tmp_path, device="cpu")
    usual = generate("the cat").answers[0].num_tokens
    assert generate("the cat", max_tokens=2).answers[0].num_tokens <= 2 < usual
    assert generate("the cat").answers[0].num_tokens == usual
    with pytest.raises(SettingsError, match="seed is for sampling"):
        generate("the cat", seed=3)


def test_results_before_a_wrong_input_come_first(small_folder):
    pairs = [("the cat", "a dog"), NamedInput("line 9", ("a", "")), ("the", "dog")]
    results = NextSentence.load(small_folder, device="cpu").stream(pairs)
    assert 0 <= next(results) <= 1
    with pytest.raises(InputError, match="line 9 has an empty text"):
        next(results)
