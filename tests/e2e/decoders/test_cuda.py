"""What writes texts, on a GPU. Runs only where there is one."""

import pytest
import torch
from tests.e2e.small import pretrain_words
from tests.unit.decoders.seq2seq.small import write_files

from bertkit.cli.main import main

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device"),
]


def run(words: str) -> None:
    assert main([*words.split(), "--device", "cuda"]) == 0


def test_sentences_are_chosen(model, workshop):
    run(f"summarize {workshop}/corpus.txt --model {model} --length 1")


def test_a_left_to_right_model_is_trained_and_writes(workshop, tmp_path):
    words = pretrain_words(workshop, tmp_path / "run", "--objective", "causal", steps=4)
    run(" ".join(words).replace(" --device cpu", ""))
    run(f"generate {tmp_path}/run the --max-tokens 4 --temperature 1")
    run(f"score --model {tmp_path}/run the")


def test_a_translator_is_trained_and_writes(tmp_path):
    write_files(tmp_path)
    run(
        f"finetune translate --train {tmp_path}/train.en {tmp_path}/train.de"
        f" --dev {tmp_path}/dev.en {tmp_path}/dev.de --output {tmp_path}/model --steps 4"
        " --size 1x64 --vocab-size 64 --max-length 16"
        " --max-tokens 16"
    )
    run(f"translate {tmp_path}/model one --beams 3")
