import re
from collections import Counter

import pytest
from tests.unit.recipes.finetune.small import QUICK, TASK, make_rows, write_rows

from bertkit.base.errors import InputError
from bertkit.data.problems import RowReport
from bertkit.data.tables.records import open_records
from bertkit.recipes.finetune.data import FineTuningData, TaskSet, divide_by_stratum
from bertkit.tasks.answer.examples import AnswerExample
from bertkit.tasks.answer.task import AnswerQuestions
from bertkit.tasks.choose.examples import ChooseExample
from bertkit.tasks.choose.task import Choose
from bertkit.tasks.classify.examples import ClassifyExample
from bertkit.tasks.classify.task import Classify
from bertkit.tasks.embed import EmbeddingSettings
from bertkit.tasks.embed.examples import EmbedExample
from bertkit.tasks.texts import Texts
from bertkit.tokenization.tokenizer import Tokenizer

TWO = Classify(TASK, ("bad", "good"))


@pytest.fixture
def tokenizer(made):
    return Tokenizer.load(made / "model")


def read(path):
    return TaskSet.read(Classify, open_records(path), TASK)


def encode(path, task, tokenizer):
    found = read(path)
    found.encode(task, tokenizer)
    return found


def open_data(train, dev=None, **changes):
    return FineTuningData("classify", train, dev, TASK, QUICK.model_copy(update=changes))


def test_empty_and_cut_texts_are_kept_and_told(tmp_path, tokenizer):
    rows = [*make_rows(20, 1), ",good", f"{'the ' * 30},bad"]
    found = encode(write_rows(tmp_path / "a.csv", rows), TWO, tokenizer)
    counts = found.counts
    assert (counts.num_examples, counts.num_empty) == (22, 1)
    lines = found.describe(TWO)
    assert lines[0].endswith("22 examples; labels: bad 11, good 11")
    assert any("1 of them without text, kept" in line for line in lines)


def test_texts_read_in_windows_are_told(tmp_path, tokenizer):
    task = Classify(TASK.model_copy(update={"long_texts": "windows"}), ("bad", "good"))
    found = encode(
        write_rows(tmp_path / "a.csv", [*make_rows(4, 1), f"{'the ' * 30},bad"]), task, tokenizer
    )
    counts = found.counts
    assert counts.num_in_windows == 1
    assert any("1 of them read in several windows" in x for x in found.describe(task))


def test_labels_that_arent_learned_are_counted_and_named(tmp_path, tokenizer):
    rows = [*make_rows(20, 1), *(f"the,odd{number}" for number in range(7))]
    found = encode(write_rows(tmp_path / "a.csv", rows), TWO, tokenizer)
    counts = found.counts
    assert counts.num_unseen == 7
    lines = found.describe(TWO)
    assert "7 labels not among the training labels" in lines[1]
    assert "a.csv, line 22: 'odd0'" in lines[2]
    assert lines[-1] == "  …"
    assert len(lines) == 8
    assert "f1 is that of 'good'" in found.list_warnings(TWO)[-1]


def test_what_holds_for_both_sets_is_told_once(tmp_path, tokenizer, capsys):
    rows = write_rows(tmp_path / "a.csv", make_rows(20, 1))
    open_data(rows, write_rows(tmp_path / "b.csv", make_rows(8, 2))).encode(tokenizer)
    told = capsys.readouterr().err
    assert told.count("f1 is that of 'good'") == 1
    assert "b.csv: 8 examples" in told


def test_held_out_texts_that_are_learned_too_are_told(tmp_path, capsys):
    train = write_rows(tmp_path / "a.csv", ["the cat,good", "a cat,bad", "a hat,bad"])
    dev = write_rows(tmp_path / "b.csv", ["the cat,bad", "a hat,bad", "the hat,good"])
    assert open_data(train, dev).task.labels == ("bad", "good")
    assert "b.csv: 2 of 3 texts are in the training data too" in capsys.readouterr().err
    twice = write_rows(tmp_path / "c.csv", ["the cat,good", "the cat,bad"] * 2)
    assert open_data(twice).task.labels == ("bad", "good")
    assert re.search(r"held out: (\d+) of \1 texts are in the training", capsys.readouterr().err)
    write_rows(dev, ["the dog,bad", "the hat,good"])
    assert open_data(train, dev).task.labels == ("bad", "good")
    assert "training data too" not in capsys.readouterr().err


def test_mostly_other_labels_are_an_error(tmp_path, tokenizer):
    rows = [*make_rows(4, 1), *(f"the,odd{number}" for number in range(5))]
    with pytest.raises(
        InputError, match=r"5 of 9 labels aren't among .*\(bad, good\), first .*odd0"
    ):
        encode(write_rows(tmp_path / "a.csv", rows), TWO, tokenizer)


def test_what_is_held_out_follows_from_the_seed(tmp_path):
    found = read(write_rows(tmp_path / "a.csv", make_rows(20, 1)))
    (train, dev), (_, same), (_, other) = (found.hold_out(0.25, seed) for seed in (1, 1, 2))
    assert (len(train.examples), len(dev.examples)) == (15, 5)
    assert dev.examples == same.examples != other.examples
    assert len({each.place for each in (*train.examples, *dev.examples)}) == 20
    assert dev.name.endswith("a.csv, held out")


@pytest.mark.parametrize(
    ("kind", "make"),
    [
        (AnswerQuestions, lambda context, number: AnswerExample(f"{number}?", context)),
        (Choose, lambda context, number: ChooseExample(context, (f"{number}", "b"))),
    ],
)
@pytest.mark.parametrize("seed", range(5))
def test_examples_that_share_a_text_are_held_out_together(kind, make, seed):
    texts = [f"text {number // 4}" for number in range(40)]
    examples = [make(text, number) for number, text in enumerate(texts)]
    parts = TaskSet("a.jsonl", (), examples).hold_out(0.25, seed)
    train, dev = ({one.context for one in part.examples} for part in parts)
    assert not train & dev
    assert len(parts[1].examples) == 8  # a third text has no room among ten


def test_texts_that_are_large_or_one_are_held_out_as_well_as_can_be():
    def part(*sizes):
        texts = [f"text {place}" for place, size in enumerate(sizes) for _ in range(size)]
        examples = [AnswerExample("?", text, place=str(n)) for n, text in enumerate(texts)]
        return len(TaskSet("a.jsonl", (), examples).hold_out(0.1, 0)[1].examples)

    assert part(20, 30) == 20
    assert part(50) == 5
    assert part(*[1] * 50) == 5
    assert part(46, 1, 1, 1, 1) == 4


def test_another_seed_keeps_the_split_where_that_has_its_own(tmp_path):
    path = write_rows(tmp_path / "a.csv", make_rows(20, 1))

    def part(**seeds):
        return open_data(path, **seeds).dev.examples

    assert part(seed=1, split_seed=5) == part(seed=2, split_seed=5) == part(seed=5)
    assert part(seed=1) != part(seed=1, split_seed=5)
    assert part(seed=5, split_seed=0) == part(seed=0)


def test_one_example_cant_be_parted(tmp_path):
    path = write_rows(tmp_path / "a.csv", ["the cat,good"])
    with pytest.raises(InputError, match="has 1 example; give held-out ones with --dev"):
        _ = open_data(path).train


def test_labels_that_are_all_held_out_are_told(tmp_path):
    def fail(rows: list[str]) -> str:
        with pytest.raises(InputError) as caught:
            _ = open_data(write_rows(tmp_path / "a.csv", rows)).task
        return str(caught.value)

    assert re.search(
        r"a\.csv: 1 of 2 examples were held out, and of the rest all examples have the label '.';"
        " at least two labels are needed; add examples, or give held-out ones with --dev",
        fail(["the cat,x", "a dog,y"]),
    )
    assert fail(["the cat,y", "a dog,y"]).startswith("all examples have the label 'y'")


def test_many_labels_are_shown_by_the_most_frequent(tmp_path, tokenizer):
    rows = [f"the,{number}" for number in range(12)] + ["a,11"]
    task = Classify(TASK, tuple(sorted(map(str, range(12)))))
    found = encode(write_rows(tmp_path / "a.csv", rows), task, tokenizer)
    (line,) = found.describe(task)
    assert "labels: 11 2, 0 1" in line
    assert line.endswith("and 2 more")


def test_a_label_that_looks_like_a_known_one_is_told(tmp_path, tokenizer):
    found = encode(
        write_rows(tmp_path / "a.csv", [*make_rows(20, 1), "the,Good", "the,gооd"]), TWO, tokenizer
    )
    (line,) = [line for line in found.list_warnings(TWO) if "look alike" in line]
    assert "'Good' (1) and 'good' (10) differ in case" in line
    assert "'gооd' (1) and 'good' (10) differ in letters of another script" in line
    known = Classify(TASK, ("bad", "good", "Good", "gооd"))
    assert not any("look alike" in line for line in found.list_warnings(known))


def test_labels_are_told_in_lines_that_nothing_breaks_or_turns(tmp_path, tokenizer):
    rows = [*make_rows(20, 1), 'the,"two\nlines"', "the,a\u202eb", f"the,{'x' * 1000}"]
    found = encode(write_rows(tmp_path / "a.csv", rows), TWO, tokenizer)
    counts = found.counts
    told = "\n".join(found.describe(TWO))
    assert "line 22: 'two lines'" in told
    assert "'a\ufffdb'" in told
    assert "x" * 41 not in told
    assert max(map(len, told.splitlines())) < 300
    assert list(counts.labels)[-1] == "x" * 1000


def labeled(*labels: str) -> TaskSet:
    examples = [ClassifyExample(Texts(f"text {n}"), (one,)) for n, one in enumerate(labels)]
    return TaskSet("a.csv", (), examples)


@pytest.mark.parametrize("seed", range(5))
def test_labels_are_held_out_in_proportion(seed):
    whole = labeled(*["often"] * 70, *["seldom"] * 20, *["rare"] * 10)
    held_out = Counter(one.labels[0] for one in whole.hold_out(0.1, seed)[1].examples)
    assert held_out == {"often": 7, "seldom": 2, "rare": 1}


def test_what_proportion_leaves_open_is_filled():
    _, dev = labeled(*"abcdefghij").hold_out(0.3, 0)
    assert len(dev.examples) == 3
    assert divide_by_stratum(Counter(a=5, b=3, c=2), 3) == {"a": 1, "b": 1, "c": 1}


def paired(*rows: tuple[str, str]) -> TaskSet:
    """Rows of queries and passages, with their groups."""
    examples = [EmbedExample(query, (passage,)) for query, passage in rows]
    settled = EmbedExample.settle(examples, RowReport("pairs.csv"), EmbeddingSettings())
    return TaskSet("pairs.csv", (), settled)


def test_a_chain_of_all_rows_is_held_out_by_query_and_that_is_said(capsys):
    """Rows 2n and 2n + 1 have the same query, rows 2n + 1 and 2n + 2 the same passage."""
    rows = [(f"query {n // 2}", f"passage {(n + 1) // 2}") for n in range(40)]
    train, dev = paired(*rows).hold_out(0.25, 0)
    assert 8 <= len(dev.examples) <= 10
    held_out = {example.query for example in dev.examples}
    assert held_out.isdisjoint(example.query for example in train.examples)
    assert "40 rows are linked by a chain of shared texts" in capsys.readouterr().err


def test_where_answers_are_few_it_is_said_that_few_rows_can_be_held_out(capsys):
    rows = [(f"question {n}", f"answer {n % 2}") for n in range(100)]
    _, dev = paired(*rows, ("alone", "nothing")).hold_out(0.3, 0)
    assert len(dev.examples) == 1
    told = "only 1 of 30 rows could be held out, since rows that share a text stay together"
    assert told in capsys.readouterr().err


def test_the_same_question_in_other_case_is_on_the_same_side():
    rows = [(f"Question {n}", f"answer {n}") for n in range(20)]
    shouted = [(query.upper(), f"other {answer}") for query, answer in rows]
    train, dev = paired(*rows, *shouted).hold_out(0.3, 0)
    held_out = {example.query.casefold() for example in dev.examples}
    assert held_out.isdisjoint(example.query.casefold() for example in train.examples)
