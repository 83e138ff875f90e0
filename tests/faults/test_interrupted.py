"""Commands that are stopped, or find the disk full, anywhere: then the same bytes come out.

`BERTKIT_NUM_KILLS` says at how many places training is killed, `BERTKIT_NUM_STOPS` at how many
`prepare` is stopped; each other command is stopped at a twentieth of the first and at its end.
"""

import json
import os
import random
import shutil
import signal
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.e2e.small import make_workshop, write_corpus
from tests.faults.children import (
    CHECKPOINT_EVERY,
    NUM_KILLS,
    SEED,
    Ending,
    list_differences,
    list_places,
    send,
    try_each,
)
from tests.faults.watch import FULL_DISK, Fault, Place
from tests.letters import letters_tokenizer, write_letters
from tests.unit.inference.small import WORDS
from tests.unit.recipes.finetune.small import save_model, write_tables
from tests.wings import DELETED_WINGS, has_command

from bertkit import BertForMaskedLM, BertForPreTraining, Tokenizer
from bertkit.base.errors import MissingFileError
from bertkit.cli.main import main
from bertkit.data.shards import MANIFEST, ShardSet

NUM_STOPS = int(os.environ.get("BERTKIT_NUM_STOPS", "50"))
INTERRUPTED, STOPPED, REFUSED = 130, 75, 2
SAVED = "rename run/checkpoints/step.partial"
MIDDLE_OF_A_SAVE = Place(
    4 * CHECKPOINT_EVERY, "half-way in write run/checkpoints/step.partial/file.partial", 3
)
BEFORE_THE_FIRST_CHECKPOINT = Place(CHECKPOINT_EVERY - 1, "before a step", 0)

Stop = tuple[Place, Fault]
Kill = tuple[Place, ...]  # where the first process is killed, where the one after it, …


@dataclass(frozen=True)
class Command:
    """A command that is stopped.

    Attributes:
        words: output → the command line.
        is_small: whether its parts are small, or its studies.
        is_run: whether it is one training run, which loses few steps.
        refuses_whole: whether it says that its output is there, where only the end was cut off.
        free: names of files that no two runs share.
        look: asserts what must hold of a stopped command's output.
        endings: the exit codes of one that SIGINT or SIGTERM was sent to.
    """

    words: Callable[[Path], Sequence[str]]
    is_small: bool = True
    is_run: bool = False
    refuses_whole: bool = False
    free: set[str] = field(default_factory=set)
    look: Callable[[Path], object] = lambda _: None
    endings: Collection[int] = (0, INTERRUPTED, STOPPED)

    def send(self, output: Path, *stops: Stop) -> Ending:
        signals = {place: [sent] for place, sent in stops}
        return send(self.words(output), output, signals, is_small=self.is_small)

    def finish(self, output: Path) -> Ending:
        """Begin it, and let nothing disturb it."""
        ending = self.send(output)
        assert ending.code == 0, ending.messages
        return ending

    def find_problems(self, reference: Path, output: Path, stops: Sequence[Stop]) -> list[str]:
        """Stop at each place, let the command be done, and say what isn't as it must be."""
        saved, problems = 0, []
        for place, sent in stops:
            ending = self.send(output, (place, sent))
            problems += self.check_stop(ending, place, sent, output)
            problems += self.check_start(ending, saved)
            saved = max(saved, saved_step(ending))
            self.look(output)
        wrong = list_differences(reference, output, self.free)
        is_whole = all(name.endswith(".lock") for name in wrong)  # which a kill may leave
        ending = self.send(output)
        problems += self.check_start(ending, saved)
        if self.is_run and (lost := stops[-1][0].step - saved) > CHECKPOINT_EVERY:
            problems.append(f"{lost} steps lost")
        if self.refuses_whole and is_whole and ending.code == REFUSED:
            return problems
        if ending.code:
            return [*problems, f"the same command ended with {ending.code}: {ending.messages}"]
        return problems + list_differences(reference, output, self.free)

    def check_stop(self, ending: Ending, place: Place, sent: Fault, output: Path) -> list[str]:
        """What a process that was stopped may not say or leave."""
        if sent == signal.SIGKILL:
            is_killed = ending.code == -sent and ending.places[-1] == place
            return [] if is_killed else [f"{place}: {ending.code}: {ending.messages}"]
        if sent == FULL_DISK:
            is_told = ending.code == REFUSED and "No space left on device" in ending.messages
            return [] if is_told or ending.code == 0 else [f"{ending.code}: {ending.messages}"]
        litter = [
            str(path.relative_to(output))
            for path in output.rglob("*")
            if sent == signal.SIGINT
            and path.name.endswith((".partial", ".lock"))
            and path.name != ".lock"
            and "checkpoints" not in path.parts
        ]
        if ending.code in self.endings and "Traceback" not in ending.messages and not litter:
            return []
        return [f"{ending.code}, left {litter}: {ending.messages}"]

    def check_start(self, ending: Ending, saved: int) -> list[str]:
        """Whether a run began with another step than the one after the last checkpoint."""
        steps = [place.step for place in ending.places if place.point == "before a step"]
        if self.is_run and steps and steps[0] != saved + 1:
            return [f"step {saved} was saved, and the next process began with {steps[0]}"]
        return []

    def check(self, reference: Path, folder: Path, all_stops: Sequence[Sequence[Stop]]) -> None:
        """Try each row of stops by itself."""
        try_each(all_stops, lambda stops, run: self.find_problems(reference, run, stops), folder)


def saved_step(ending: Ending) -> int:
    """The step of the last checkpoint that a process was done with; 0 where there is none."""
    return max((place.step for place in ending.places[:-1] if place.point == SAVED), default=0)


def kill_at(*places: Place) -> list[Stop]:
    return [(place, signal.SIGKILL) for place in places]


@pytest.fixture(scope="module")
def training(workshop):
    return Command(workshop.words, is_small=False, is_run=True)


def draw_kills(whole: Sequence[Place], taken_up: Sequence[Place], count: int) -> list[Kill]:
    """Every point of training, saving and rotating once, then most after the first checkpoint.

    A place of a point is chosen among those after the first checkpoint, where it has one there.

    Args:
        whole: what an undisturbed run passes.
        taken_up: what one passes that was killed at `MIDDLE_OF_A_SAVE`.
        count: how many.
    """
    choose = random.Random(SEED)
    first = next(index for index, place in enumerate(whole) if place.point == SAVED)
    early, late = whole[: first + 1], whole[first + 1 :]
    kills: list[Kill] = [
        (choose.choice(list_places(late, point) or list_places(early, point)),)
        for point in dict.fromkeys(place.point for place in whole if place.step)
    ]
    setting_up = [place for place in taken_up if place.step == 0]
    while len(kills) < count:
        one, other = choose.choice(late), choose.choice(late)
        rare: list[Kill] = [(choose.choice(early),), (MIDDLE_OF_A_SAVE, choose.choice(setting_up))]
        often: list[Kill] = [(one,), (one, other) if one.step < other.step else (one,)]
        kinds = rare + 3 * often
        kills.append(kinds[len(kills) % len(kinds)])
    return kills


def test_training_that_is_killed_anywhere_comes_to_the_same(training, undisturbed, tmp_path):
    reference, ending = undisturbed
    training.send(tmp_path / "run", *kill_at(MIDDLE_OF_A_SAVE))
    taken_up = training.finish(tmp_path / "run").places
    kills = draw_kills(ending.places, taken_up, NUM_KILLS)
    training.check(reference, tmp_path, [kill_at(*places) for places in kills])


@pytest.mark.exhaustive
def test_killed_and_taken_up_without_its_source_nothing_changes(workshop, training, tmp_path):
    """A run that begins with the weights of a checkpoint that has no pair head."""
    first, source, parts = (tmp_path / name for name in ("first", "source", "parts"))
    Command(lambda run: workshop.words(run, "--steps 2"), is_small=False).finish(first)
    BertForMaskedLM.from_pretrained(first).save_pretrained(source)
    Tokenizer.load(workshop.folder / "tokenizer").save(source)

    def words(run: Path) -> list[str]:
        given = workshop.words(run, "--steps 18")
        place = given.index("--size")
        return [
            *given[:place],
            "--model",
            str(source),
            "--objective",
            "bert",
            *given[place + 2 :],
        ]

    going_on = Command(words, is_small=False)
    going_on.finish(tmp_path / "whole")
    for stop in kill_at(BEFORE_THE_FIRST_CHECKPOINT, MIDDLE_OF_A_SAVE):
        assert going_on.check_stop(going_on.send(parts, stop), *stop, parts) == []
    shutil.rmtree(source)
    going_on.finish(parts)
    assert list_differences(tmp_path / "whole", parts) == []
    assert BertForPreTraining.from_pretrained(parts).new_heads == ()


TUNING = "--max-length 24 --batch-size 8 --dropout 0 --learning-rate 1e-2 --device cpu"
WRITING = (
    "--steps 4 --eval-every 2 --checkpoint-every 1 --average 1 --size 1x16"
    " --vocab-size 64 --tokens-per-batch 64 --max-length 16"
    " --max-tokens 16 --eval-examples 2 --device cpu"
)
CLASSIFY = "finetune classify --model {0}/model --train {0}/dev.csv --dev {0}/dev.csv"
STUDY = {"settings.json", "result.json", "run_state.json", "study.json", "report.html", "table.md"}
COMMANDS = {
    "answer": "finetune answer --model {0}/model --train {0}/squad.json --dev {0}/squad.json"
    f" --output {{1}} --epochs 1 --stride 4 {TUNING}",
    "translate": "finetune translate --train {0}/train.en {0}/train.de --dev {0}/dev.en"
    f" {{0}}/dev.de --output {{1}} {WRITING}",
    "summarize": f"finetune summarize --train {{0}}/pairs.jsonl --output {{1}} {WRITING}",
    "seeds": f"{CLASSIFY} --output {{1}} --epochs 1 --seeds 2 {TUNING}",
    "study": "study steps --data {0}/shards --output {1} --device cpu --seeds 1",
    "npy": "embed --model {0}/model {0}/texts.txt --output {1}.npy --engine torch",
    "jsonl": "embed --model {0}/model {0}/texts.txt --output {1}.jsonl --engine torch",
    "features": "features --model {0}/model {0}/texts.txt --output {1}.parquet --engine torch",
    "report": "report {0}/trained --output {1}.html --examples 0",
    "convert": "convert {0}/model {1}",
    "train-tokenizer": "train-tokenizer {0}/texts.txt --vocab-size 60 --output {1} --overwrite",
    "view": "view cat --model {0}/model --output {1}.html",
}
REFUSE_WHAT_IS_WHOLE = {"convert", "features", "report", "view"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What the commands read."""
    folder = tmp_path_factory.mktemp("commands")
    save_model(folder / "model")
    write_tables(folder)
    if "decoders" not in DELETED_WINGS:
        from tests.unit.decoders.seq2seq.small import make_pairs, write_files

        write_files(folder)
        pairs = [{"text": source, "summary": target} for source, target in make_pairs(24, 1)]
        (folder / "pairs.jsonl").write_text("".join(f"{json.dumps(pair)}\n" for pair in pairs))
    (folder / "squad.json").write_text(json.dumps({"data": [{"paragraphs": make_questions()}]}))
    choose = random.Random(0)
    texts = [" ".join(choose.choices(WORDS[:7], k=5)) for _ in range(20)]
    (folder / "texts.txt").write_text("\n".join(texts))
    write_corpus(folder / "corpus.txt", 120)
    make_workshop(folder, "corpus.txt", vocab_size=120, held_out=0.3)
    sizes = "--steps 2 --batch-size 4 --max-length 32 --eval-examples 4 --device cpu"
    words = f"pretrain --data {folder}/shards --size tiny --output {folder}/trained {sizes}"
    assert main(words.split()) == 0
    return folder


def make_questions() -> list[dict[str, object]]:
    context = "the cat saw a dog . the dog lost the hat"
    return [
        {
            "context": context,
            "qas": [
                {
                    "id": str(number),
                    "question": question,
                    "answers": [{"text": text, "answer_start": context.index(text)}],
                }
            ],
        }
        for number, (question, text) in enumerate([("a cat", "the cat"), ("a dog", "the hat")] * 4)
    ]


def draw_stops(places: Sequence[Place]) -> list[list[Stop]]:
    """The end of the work, where most commands leave something behind, and places at random."""
    choose = random.Random(SEED)
    of_files = [place for place in places[:-1] if " run" in place.point]
    stops = kill_at(places[-1])
    for number in range(max(3, NUM_KILLS // 20)):
        sent = (signal.SIGKILL, signal.SIGINT, FULL_DISK)[number % 3]
        stops.append((choose.choice(of_files if sent == FULL_DISK else places[:-1]), sent))
    return [[stop] for stop in stops]


@pytest.mark.parametrize("name", [name for name in COMMANDS if has_command(COMMANDS[name])])
def test_stopped_anywhere_the_same_command_comes_to_the_same(name, folder, tmp_path):
    def words(output: Path) -> list[str]:
        output.mkdir(exist_ok=True)
        return COMMANDS[name].format(folder, output / "made").split()

    command = Command(
        words,
        refuses_whole=name in REFUSE_WHAT_IS_WHOLE,
        free=STUDY if name == "study" else set(),
    )
    places = command.finish(tmp_path / "whole").places
    command.check(tmp_path / "whole", tmp_path, draw_stops(places))


@pytest.fixture(scope="module")
def letters(tmp_path_factory):
    """Files, two a unit, and a tokenizer of letters."""
    folder = tmp_path_factory.mktemp("prepare")
    write_letters(folder / "corpus", "abcdefgh", 20)
    letters_tokenizer().save(folder / "tokenizer")
    return folder


@pytest.fixture(scope="module")
def preparing(letters):
    words = f"prepare {letters}/corpus --tokenizer {letters}/tokenizer --held-out 0.2 --workers 1"
    return Command(
        lambda output: [*words.split(), "--output", str(output)],
        look=check_whole_or_unfinished,
        endings=[STOPPED],
    )


def check_whole_or_unfinished(shards: Path) -> None:
    try:
        ShardSet.open(shards, verify="all")
    except MissingFileError:
        assert not (shards / MANIFEST).exists()


@pytest.fixture(scope="module")
def prepared(preparing, letters):
    """What an undisturbed call writes, and all places that it passes."""
    return letters / "whole", preparing.finish(letters / "whole").places


def draw_by_role(places: Sequence[Place], num_stops: int) -> list[list[Stop]]:
    """Each kind of operation on each kind of file in turn; every third stop is SIGTERM."""
    choose = random.Random(SEED)
    by_role: dict[str, list[Place]] = {}
    for place in places:
        role = "/".join(place.point.split("/")[:2])
        by_role.setdefault(role + "/" * place.point.count("/"), []).append(place)
    roles = choose.sample(sorted(by_role), len(by_role))
    kinds = [signal.SIGKILL, signal.SIGKILL, signal.SIGTERM]
    return [
        [(choose.choice(by_role[roles[number % len(roles)]]), kinds[number % 3])]
        for number in range(num_stops)
    ]


def test_preparing_that_is_stopped_anywhere_comes_to_the_same(preparing, prepared, tmp_path):
    whole, places = prepared
    assert len([*whole.rglob("*.tokens.npy")]) > 8  # several a unit
    preparing.check(whole, tmp_path, draw_by_role(places, NUM_STOPS))
