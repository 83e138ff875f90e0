"""Tags and entities against transformers: its word ids, its pipeline."""

import numpy as np
import torch
import transformers
from tests.closeness import close

from bertkit.inference.predictor import Tagger
from bertkit.models.bert.fine_tuning import BertForTokenClassification
from bertkit.tasks.batch import IGNORED_LABEL
from bertkit.tasks.tag import TagSettings
from bertkit.tasks.tag.examples import TagExample
from bertkit.tasks.tag.task import Tag
from bertkit.tokenization.tokenizer import Tokenizer

LABELS = ("O", "B-LOC", "B-PER", "I-LOC", "I-PER")
SENTENCES = (
    "Angela Merkel 's U.S. visit , 2019-05-30 , cost € 1,000.50 !",
    "@user_12 loves #São_Paulo & http://t.co/x?y=1 :-)",
    "Jürgen Klopp 和 北京 don't ñandú 🙂🙂 naïve…",
    "Pneumonoultramicroscopicsilicovolcanoconiosis xyzzyplugh ﬁne",
    "a\u00adb x\u0301 [SEP] [MASK] ##s - —",
)
TEXTS = (
    "Angela Merkel flew from Berlin to Washington, D.C. on Monday.",
    "Zoë Quinn's café in São Paulo isn't (yet) open; 東京 is.",
    "antidisestablishmentarianism Lovelace-Byron",
)


def test_words_have_the_pieces_and_first_pieces_of_transformers(minilm):
    theirs = transformers.AutoTokenizer.from_pretrained(minilm)
    task, ours = Tag(TagSettings(max_length=512), LABELS), Tokenizer.load(minilm)
    for sentence in SENTENCES:
        words = tuple(sentence.split(" "))
        (encoded,) = task.encode([TagExample(words, tags=("B-LOC",) * len(words))], ours)
        # Their tokenizer reads [SEP] in a text as the special token; in ours it is text.
        shown = [word for word in words if not word.startswith("[")]
        (plain,) = task.encode([TagExample(tuple(shown), tags=("B-LOC",) * len(shown))], ours)
        expected = theirs(shown, is_split_into_words=True)
        (sequence,) = plain.sequences
        assert sequence.ids == expected["input_ids"]
        owners = expected.word_ids()
        first = [owners.index(word) for word in range(len(shown))]
        assert plain.alignment[1].tolist() == first
        labels = np.full(len(owners), IGNORED_LABEL)
        labels[first] = LABELS.index("B-LOC")
        assert plain.labels.tolist() == labels.tolist()
        assert (encoded.labels != IGNORED_LABEL).sum() == len(words)


def test_entities_of_texts_are_those_of_the_pipeline(minilm, tmp_path):
    torch.manual_seed(1)
    task = Tag(TagSettings(max_length=128), LABELS)
    model = BertForTokenClassification.from_pretrained(
        minilm, new_heads=True, **task.config_changes
    )
    torch.nn.init.normal_(model.classifier.weight, std=0.3)
    model.save_pretrained(tmp_path)
    Tokenizer.load(minilm).save(tmp_path)
    tag = Tagger.load(tmp_path, device="cpu", engine="torch", precision="fp32")
    assert (tag.task.labels, tag.task.scheme) == (LABELS, "BIO")
    pipeline = transformers.pipeline(
        "token-classification", str(tmp_path), aggregation_strategy="first", device="cpu"
    )
    num_entities = 0
    for text, found in zip(TEXTS, tag(list(TEXTS)), strict=True):
        expected = pipeline(text)
        num_entities += len(expected)
        assert [(one.type, one.start, one.stop) for one in found.entities] == [
            (one["entity_group"], one["start"], one["end"]) for one in expected
        ]
        assert [one.probability for one in found.entities] == close(
            [float(one["score"]) for one in expected], "float32"
        )
    assert num_entities > 5
