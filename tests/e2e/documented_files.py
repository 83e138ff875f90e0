"""The models and files that the documentation names, as small as they can be."""

import json
import re
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tests.e2e.documentation import ROOT, list_pages, read_blocks
from tests.e2e.small import write_corpus
from tests.unit.inference.small import build_model, save_small
from tests.unit.inference.small_causal import save_causal
from tests.unit.inference.small_task import save_answerer, save_model, save_tagger
from tests.unit.recipes.finetune.small import make_rows, write_rows

from bertkit.checkpoints.sentence_modules import Pooling
from bertkit.checkpoints.sentence_transformers import SentenceModel, write_sentence_model
from bertkit.cli.main import main
from bertkit.tasks.choose import ChooseSettings
from bertkit.tasks.choose.task import Choose
from bertkit.tasks.regress import RegressSettings
from bertkit.tasks.regress.task import Regress
from bertkit.tasks.rerank import RerankSettings
from bertkit.tasks.rerank.task import Rerank
from bertkit.tokenization.engine import SPECIAL_TOKENS
from bertkit.tokenization.tokenizer import Tokenizer

Rows = list[tuple[str, str]]  # texts and labels
TEXTS = (
    "The doctor lost her hat. A dog saw it in the river. Nobody went home.",
    "Rain fell all day. The captain waited for a ship. It never came.",
    "A cat sat down. The cat took a seat near the door. It slept.",
)


def save_encoder(folder: Path) -> None:
    """Layers and heads of all-MiniLM-L6-v2, and for a vocabulary the words of all examples."""
    code = "\n".join(block.code for page in list_pages() for block in read_blocks(page))
    tokenizer = Tokenizer(list(dict.fromkeys([*SPECIAL_TOKENS, *split_words(code.lower())])))
    sizes = {"hidden_size": 24, "num_hidden_layers": 6, "num_attention_heads": 12}
    model = build_model(**sizes, vocab_size=tokenizer.vocab_size, max_position_embeddings=512)
    model.save_pretrained(folder)
    tokenizer.save(folder)


def save_sentence_encoder(folder: Path) -> None:
    """The same with the mean of the tokens."""
    save_encoder(folder)
    pooling = Pooling(dimension=24, modes=("mean",))
    write_sentence_model(folder, SentenceModel((pooling,), max_seq_length=128))


def save_bundled(folder: Path) -> None:
    """A package in the place of the one with the model that comes with bertkit."""
    save_sentence_encoder(folder / "vectors")
    save_encoder(folder / "words")
    (folder / "__init__.py").touch()


def split_words(text: str) -> list[str]:
    return re.findall(r"\w+|[^\w\s]", text)


def save_sentiment(folder: Path) -> None:
    """A classifier as `bertkit finetune` leaves it, with its report."""
    encoder, train = folder.with_name("encoder"), folder.with_name("rows.csv")
    save_sentence_encoder(encoder)
    write_reviews(train)
    run(f"finetune classify --model {encoder} --train {train} --output {folder} --epochs 1")


def save_translator(folder: Path, max_length: int = 16) -> None:
    from tests.unit.decoders.small_encoder_decoder import save_encoder_decoder
    from tests.unit.decoders.small_rewriter import SAVED

    from bertkit.decoders.generation.settings import write_seq2seq_file

    save_encoder_decoder(folder)
    lengths = {"max_source_length": max_length, "max_target_length": max_length}
    write_seq2seq_file(folder, SAVED.model_copy(update=lengths))


def save_tokenizer(folder: Path) -> None:
    save_small(folder.with_name("whole"))
    Tokenizer.load(folder.with_name("whole")).save(folder)


def save_shards(folder: Path) -> None:
    tokenizer, corpus = folder.with_name("words"), folder.with_name("corpus.txt")
    save_tokenizer(tokenizer)
    write_corpus(corpus, 300)
    words = f"prepare {corpus} --tokenizer {tokenizer} --output {folder} --held-out 0.1 --workers 1"
    run(words)


def save_pretrained(folder: Path) -> None:
    """A run with as many layers as the examples look at."""
    shards, config = folder.with_name("shards"), folder.with_name("nano.json")
    save_shards(shards)
    sizes = {"hidden_size": 8, "num_hidden_layers": 4, "num_attention_heads": 2}
    config.write_text(json.dumps({"model_type": "bert", **sizes, "intermediate_size": 16}))
    run(
        f"pretrain --data {shards} --size {config} --output {folder} --objective bert --steps 2"
        " --batch-size 16 --max-length 32 --eval-examples 32"
    )


def save_onnx(folder: Path) -> None:
    save_sentence_encoder(folder.with_name("sentences"))
    run(f"export {folder.with_name('sentences')} --output {folder}")


def save_features(path: Path) -> None:
    save_small(folder := path.with_name("features-model"))
    write_texts(texts := path.with_name("features.txt"))
    run(f"features {texts} --model {folder} --output {path}")


def write_books(folder: Path) -> None:
    folder.mkdir()
    write_corpus(folder / "book.txt", 40)


def write_texts(path: Path) -> None:
    path.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")


def write_notes(folder: Path) -> None:
    folder.mkdir()
    write_texts(folder / "tires.md")


def write_passages(path: Path) -> None:
    path.write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS), encoding="utf-8")


def write_reviews(path: Path) -> None:
    labels = {"good": "positive", "bad": "negative"}
    rows = (row.rpartition(",") for row in make_rows(40, 2))
    write_rows(path, [f"{text},{labels[label]}" for text, _, label in rows])


def write_pairs(path: Path) -> None:
    texts = [row.rpartition(",")[0] for row in make_rows(48, 2)]
    write_rows(path, [f"{text} {place},{text} again {place}" for place, text in enumerate(texts)])
    path.write_text(path.read_text().replace("text,label", "question,answer", 1))


def write_decisions(path: Path) -> None:
    head = '"number","place","text","label","decision","new_label"'
    row = '"3","reviews.csv, line 4","A text","negative","change","positive"'
    path.write_text(f"{head}\r\n{row}\r\n", encoding="utf-8-sig")


def write_vectors(path: Path) -> None:
    np.save(path, np.random.default_rng(0).normal(size=(20, 384)).astype(np.float32))


def run(words: str) -> None:
    assert main(words.split()) == 0


MAKERS: Mapping[str, Callable[[Path], object]] = {
    "all-MiniLM-L6-v2": save_sentence_encoder,
    "bert-base": save_encoder,
    "books": write_books,
    "bundled": save_bundled,
    "de-en": save_translator,
    "decisions.csv": write_decisions,
    "endings": lambda folder: save_model(folder, Choose(ChooseSettings(max_length=16))),
    "features.parquet": save_features,
    "gpt": save_causal,
    "minilm": save_sentence_encoder,
    "minilm-onnx": save_onnx,
    "tagger": save_tagger,
    "old-model": save_small,
    "notes/": write_notes,
    "pairs.csv": write_pairs,
    "passages.jsonl": write_passages,
    "reader": save_answerer,
    "report.txt": write_texts,
    "reviews.csv": write_reviews,
    "reranker": lambda folder: save_model(folder, Rerank(RerankSettings(max_length=16))),
    "run": save_pretrained,
    "sentence-transformers/all-MiniLM-L6-v2": save_sentence_encoder,
    "sentiment": save_sentiment,
    "shards": save_shards,
    "similarity": lambda folder: save_model(
        folder, Regress(RegressSettings(max_length=16, pairs=True))
    ),
    "test.csv": write_reviews,
    "texts.de": write_texts,
    "texts.txt": write_texts,
    "story.txt": lambda path: shutil.copy(ROOT / "examples/data/story.txt", path),
    "tokenizer": save_tokenizer,
    "train.csv": write_reviews,
    "vectors.npy": write_vectors,
}


@dataclass(frozen=True)
class Shelf:
    """A folder in which each of them is made once, in a folder of its own."""

    folder: Path

    def lay_out(self, names: Iterable[str], target: Path) -> None:
        """Copy models and files to where the examples look for them."""
        for name in names:
            kept = self.folder / name.replace("/", "-") / Path(name).name
            if not kept.exists():
                kept.parent.mkdir()
                MAKERS[name](kept)
            wanted = target / name
            wanted.parent.mkdir(exist_ok=True)
            (shutil.copytree if kept.is_dir() else shutil.copy)(kept, wanted)
