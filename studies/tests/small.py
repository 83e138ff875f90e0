"""A study without a model: its figures are a table, and a cell of it may fail."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from bertkit_studies.outcome import Outcome
from bertkit_studies.saved import CellResult, SavedFigure, StudyRecord
from bertkit_studies.settings import StudySettings
from bertkit_studies.study import (
    FIRST,
    LAST,
    Arm,
    Cell,
    Claim,
    Decision,
    Figure,
    Measure,
    Side,
    Study,
)

SCORE = Measure("score", "Score of the task", "share of all", is_percent=True)
LOSS = Measure("loss", "Loss", "nats", is_higher_better=False)
COURSE = Measure("history", "Score over time", "share of all", is_percent=True, across="steps")
LEVELS = {"good": 0.8, "bad": 0.5, "middle": 0.79}


@dataclass
class Told:
    """What a study of the tests is told and tells.

    Attributes:
        cells: those that were run.
        on_cell: what happens in a cell before it is measured.
        data: what tells the data.
    """

    cells: list[Cell] = field(default_factory=list)
    on_cell: Callable[[Cell], None] = lambda cell: None
    data: str = "text"
    num_decided: int = 0


class SmallStudy(Study[StudySettings]):
    name = "small"
    question = "Is good better than bad?"
    finding = "A paper found that it is."
    budget = "All have the same."
    caution = "Nothing is trained here."

    def __init__(self, settings: StudySettings, told: Told | None = None) -> None:
        super().__init__(settings)
        self.told = Told() if told is None else told

    @property
    def arms(self) -> Sequence[Arm]:
        return [Arm(name, f"the {name} one") for name in LEVELS]

    @property
    def measures(self) -> Sequence[Measure]:
        return [SCORE, LOSS, COURSE, Measure("never", "Never measured", "nothing")]

    @property
    def claims(self) -> Sequence[Claim]:
        good, bad, middle = Side("good"), Side("bad"), Side("middle")
        return [
            Claim("Good is better than bad", "A 2018, table 1", "score", good, bad),
            Claim("Good is better than middling", "A 2018, table 2", "score", good, middle),
            Claim("Good has the higher loss", "A 2018, table 3", "loss", bad, good),
            Claim("It rises", "B 2019", "history", Side("good", LAST), Side("good", FIRST)),
            Claim("Nobody knows", "C 2020", "never", good, bad),
        ]

    def identify_data(self) -> str:
        return self.told.data

    def decide(self) -> Decision:
        self.told.num_decided += 1
        return Decision({"steps": 10}, {"good": 60.0, "bad": 60.0})

    def run_cell(self, cell: Cell, folder, decision: Decision) -> list[Figure]:
        self.told.on_cell(cell)
        self.told.cells.append(cell)
        assert decision.values == {"steps": 10}
        return list_figures(cell)


def list_figures(cell: Cell) -> list[Figure]:
    """Numbers of a cell: seeds lie a hundredth apart."""
    score = LEVELS[cell.arm] + cell.seed / 100
    history = [Figure("history", score * step / 20, float(step)) for step in (5, 10, 20)]
    return [Figure("score", score), Figure("loss", 1 - score), *history]


def build_outcome(num_seeds: int = 3, arms: Sequence[str] = tuple(LEVELS)) -> Outcome:
    """What came of a study that is done."""
    study = SmallStudy(StudySettings(seeds=num_seeds))
    cells = [Cell(arm, seed) for seed in range(num_seeds) for arm in arms]
    results = {
        cell: CellResult(
            arm=cell.arm,
            seed=cell.seed,
            seconds=61.0,
            figures=tuple(
                SavedFigure(measure=one.measure, value=one.value, at=one.at)
                for one in list_figures(cell)
            ),
        )
        for cell in cells
    }
    record = StudyRecord(
        study="small", settings={"size": "small"}, data="text", values={"steps": 10}
    )
    return Outcome(study, record, results, {}, [])
