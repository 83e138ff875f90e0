"""What can't be meant: each command says so in a line, exits with 2 and writes nothing."""

import shlex
import shutil
from pathlib import Path

import pytest
from tests.e2e.documented_files import save_translator
from tests.e2e.small import without_precision
from tests.unit.inference.small import save_small
from tests.unit.inference.small_causal import save_causal
from tests.unit.recipes.finetune.small import save_model, write_tables
from tests.wings import DELETED_WINGS, has_command

from bertkit.cli.main import main

TEXT = "the cat saw a dog ."
LONG = "the cat " * 20
FINETUNE = (
    "finetune classify --model encoder --train train.csv --dev dev.csv --output out --max-length 12"
    " --epochs 4 --batch-size 8 --learning-rate 1e-2 --dropout 0 --device cpu"
)
NANO = "--data shards --size nano.json --max-length 32"
PRETRAIN = "pretrain --output run --steps 12 --batch-size 16 --eval-examples 32 --objective bert"
# What is told before a refusal that depends on both data and model.
DATA = [
    "train.csv: 40 examples; labels: bad 20, good 20",
    "train.csv: f1 is that of 'good'; --labels in another order changes that",
    "dev.csv: 16 examples; labels: bad 8, good 8",
    "new weights for classifier, which encoder doesn't have",
]
# Behind each beginning of a command line: its end, and what the error says.
CAUSAL_EXAMPLES = (
    []
    if "decoders" in DELETED_WINGS
    else [("--examples 1 --objective causal", "the objective causal chooses no words")]
)
REFUSED = {
    "attention": [
        ("--matrices x.toml", "x.toml doesn't exist"),
        ("--matrices texts.txt", "texts.txt isn't TOML"),
        ("--layer 2", "layer is of a model on a text; give a text as well"),
        ("--token dog", "there is no token 'dog'; the tokens are cat mat it"),
    ],
    "embed --model model --engine torch": [
        ("no.txt --output v.npy", "no.txt doesn't exist"),
        ("texts.txt --output v.txt", "v.txt must end with .npy or .parquet or .jsonl"),
        ("texts.txt --output v.npy --pooling best", "'best'"),
        ("texts.txt --output v.npy --format parquet", "texts.txt is damaged or cut"),
        ("texts.txt --output v.npy --prompt-name query", "has no prompt 'query'"),
        ("nothing/", "nothing/ doesn't exist, and matches no file"),
    ],
    "features --model model texts.txt --engine torch": [
        ("--layers 7", "there is no layer 7: this model has 0 (the embeddings) to 2"),
        ("--layers x", "--layers must be a whole number"),
        ("--output-format google", "--output-format google needs --combine none, got concat"),
        ("--max-length 99", "max_length is 99, and this model takes at most 24"),
        ("--output x.npy", "x.npy must end with .jsonl or .parquet"),
    ],
    "nearest --model model": [
        ("", "there is no word; give at least one"),
        ("zebra", "the word 'zebra' isn't covered by the vocabulary"),
        ("cat --layer 3", "there is no layer 3"),
        ("'cat - cat'", "cat - cat has length 0 at layer 0"),
        ("'cat + '", "'cat + ' has no word after +"),
        ("'- cat'", "'- cat' has no word to add"),
    ],
    "score --model model": [
        ("a --data b", "give one of: texts or --file, --minimal-pairs, --data"),
        ("--data b --engine torch", "no engine, no precision"),
    ],
    FINETUNE: [
        ("--label-column sentiment", "no column sentiment"),
        ("--freeze head", "--freeze must be none, embeddings, encoder, or a number of layers"),
        ("--features last --freeze 1", "leave out --freeze and layer_decay"),
        ("--threshold best", "--threshold is for --multi-label; a single label needs none"),
        ("--freeze 7", "the encoder has 2 layers"),
    ],
    "generate causal": [
        ("the --beams 0", "--beams must be at least 1, got 0"),
        ("the --beams 2 --top-p 0.5", "choose one of them"),
        ("the --seed 7", "it needs temperature, top_k or top_p"),
        ("the --num-answers 2", "--num-answers (2) must be at most --beams (1)"),
        ("the --stream --json", "--stream is for one text and one answer"),
        (f"'{LONG}'", "text 1 ('the cat the cat"),
    ],
    "inspect shards": [
        *CAUSAL_EXAMPLES,
        ("--mask-rate 0.3", "mask_rate is of examples; give --examples as well"),
        ("--seed 3", "seed is of examples; give --examples as well"),
        ("--examples 0", "--examples"),
    ],
    "prepare --tokenizer model --output out": [
        ("", "no input"),
        ("no.txt", "no.txt doesn't exist"),
        ("texts.txt --held-out 1", "held"),
        ("texts.txt --format pdf", "format"),
    ],
    PRETRAIN: [
        ("--data shards --size enormous", "unknown preset 'enormous'"),
        ("--data shards --size 3x200", "use 3x192 or 3x256"),
        ("--data shards --size nano.json --max-length 128", "max_length (128) is more than"),
        (f"{NANO} --learning-rate -1", "--learning-rate must be greater than 0, got -1"),
        (f"{NANO} --minutes 3", "one budget"),
        (f"{NANO} --device cuda:77", "cuda:77"),
    ],
    "summarize --model model": [
        ("texts.txt --lenght 3", "did you mean --length?"),
        ("texts.txt --beams 4", "extracts sentences, so it takes no --beams"),
        ("texts.txt --length 0", "is no length"),
    ],
    "train-tokenizer texts.txt --output tokenizer": [
        ("--vocab-size 9", "can't hold 5 special tokens"),
    ],
    "translate de-en": [
        ("a --file x.txt", "give texts or --file, not both"),
        ("a -", "- alone is standard input"),
        ("a --overwrite", "--overwrite needs --output"),
        ("a --references r --output o", "remove --output"),
        ("a --references r --num-answers 2", "remove --num-answers"),
        ("a --target-column de", "--target-column needs --references"),
    ],
    "view --model model": [
        ("''", "the text is empty; give at least one word"),
        (f"'{TEXT}' ' '", "the second text is empty"),
        (f"'{LONG}'", "the text has 42 tokens, and the model takes 24"),
        (f"'{TEXT}' --head 1", "head 1 needs a layer"),
        (f"'{TEXT}' --layer 9", "there is no head 9.1: this model has layers 1 to 2"),
        (f"'{TEXT}' --layer 0", "attention is in layers 1 (the first) to -1"),
        (f"'{TEXT}' --without 5.3", "there is no head 5.3"),
        (f"'{TEXT}' --token bird", "there is no token 'bird'; the tokens are [CLS] the cat"),
        (f"'{TEXT}' --views brain", "there is no view 'brain'"),
        (f"'{TEXT}' --output page.pdf", "--output page.pdf must end with .html, .svg, .png"),
        (f"'{TEXT}' --output folder.html", "folder.html is a folder; name a file"),
        ("cat --output cat.svg", "choose it with --layer and --head"),
    ],
    "view --model de-en": [
        (f"'{TEXT}' '{LONG}'", "the second text has 41 tokens, and the model takes 24"),
        (f"'{TEXT}' --without 1.1", "without is for BERTs, and de-en is an encoder-decoder"),
        (f"'{TEXT}' --views words", "de-en doesn't support the view words"),
    ],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory, workshop):
    """What the commands read."""
    folder = tmp_path_factory.mktemp("refusals")
    save_small(folder / "model")
    save_causal(folder / "causal")
    if "decoders" not in DELETED_WINGS:
        save_translator(folder / "de-en", max_length=24)
    save_model(folder / "encoder")
    write_tables(folder)
    (folder / "texts.txt").write_text("the cat saw a dog.\nThe dog lost the hat!\n")
    (folder / "folder.html").mkdir()
    shutil.copytree(workshop / "shards", folder / "shards")
    shutil.copy(workshop / "nano.json", folder)
    return folder


def has_models(words: str) -> bool:
    return "de-en" not in words or "decoders" not in DELETED_WINGS


def read_all(folder: Path) -> dict[Path, bytes | None]:
    return {
        path: path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
        if path.name != ".lock"
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(f"{first} {rest}", message, id=f"{first.split()[0]} {message}")
        for first, rows in REFUSED.items()
        if has_command(first) and has_models(first)
        for rest, message in rows
    ],
)
def test_what_can_not_be_meant_is_told_in_a_line(folder, monkeypatch, capsys, words, message):
    monkeypatch.chdir(folder)
    before = read_all(folder)
    assert main(shlex.split(words)) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    *told, error = without_precision(captured.err).splitlines()
    assert error.startswith("bertkit: ")
    assert message in error
    assert told == (DATA if "--freeze 7" in words else [])
    assert read_all(folder) == before
