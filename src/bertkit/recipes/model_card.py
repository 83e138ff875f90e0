"""The model card: `README.md`, with the YAML header that the Hub reads.

Names of files and labels are untrusted: the header's YAML quotes them, and the text escapes
Markdown and HTML.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict

from bertkit.base.files import write_file
from bertkit.checkpoints.formats import describe_model
from bertkit.checkpoints.hub import is_hub_id
from bertkit.recipes.defaults import list_defaults
from bertkit.reports.report import Folded, Report, Section, Table, write_report
from bertkit.reports.text import make_legible, show
from bertkit.training.sections import tabulate_choices, tabulate_settings

if TYPE_CHECKING:
    from bertkit.training.record import RunRecord

CARD_FILE, REPORT_FILE = "README.md", "report.html"
INTENDED_USE = """## Intended use

*To be filled in: what the model is for, for whom, what not to use it for, and its license.*"""
MAX_NAME_COLUMNS = 200
SPECIAL = "\\`*_[]|~#"
LibraryName = Literal["transformers", "sentence-transformers", "bertkit"]
SHOWN_ELSEWHERE = {"task", "kind", "model", "revision", "train", "dev"}


@dataclass(frozen=True)
class ModelFacts:
    """The data that cards and reports of all trained models show."""

    name: str  # of the model's folder
    record: "RunRecord"

    @property
    def is_from_hub(self) -> bool:
        """Whether the initial model was named by its Hub id; a folder in the cache isn't."""
        model = str(self.record.settings["model"])
        return bool(self.record.source.get("commit")) and is_hub_id(model)

    @property
    def initial_model(self) -> str:
        """The Hub id or folder name of the initial model, without parent folders."""
        model = str(self.record.settings["model"])
        return model if self.is_from_hub else describe_model(model)

    def list_settings(self) -> list[Section]:
        """Return the settings that differ from their defaults, and folded, all of them."""
        stored = self.record.settings
        defaults = list_defaults(stored, self.name)
        chosen = {name: value for name, value in stored.items() if name not in SHOWN_ELSEWHERE}
        everything = tabulate_settings(self.settings, "")
        return [tabulate_choices(chosen, defaults), Folded("All settings", [everything])]

    @property
    def settings(self) -> dict[str, str]:
        """The settings, without names of files and folders."""
        return {
            name: "none" if value is None else str(value)
            for name, value in self.record.settings.items()
            if name not in SHOWN_ELSEWHERE
        }


def build_card(
    facts: ModelFacts, library: LibraryName, task: Mapping[str, Any], summary: str, *sections: str
) -> str:
    """Build the card's text: header, name, a summary of the model, its use, and sections.

    The header has neither license nor languages, which people must add.
    """
    from huggingface_hub import ModelCardData

    header = ModelCardData(
        library_name=library,
        # Only such a name means something to the Hub.
        base_model=make_legible(facts.initial_model) if facts.is_from_hub else None,
        tags=["bertkit"],
        **task,
    )
    title = f"---\n{header.to_yaml()}\n---"
    return "\n\n".join([title, f"# {plain(facts.name)}", summary, INTENDED_USE, *sections]) + "\n"


class DataCounts(BaseModel):
    """Counts of a set of examples, a part of `metrics.json`; those with a description are shown."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    files_name: ClassVar[str] = "file"

    name: str  # of the file or files, and of the part of them
    sha256: str | tuple[str, ...]  # of each file

    def describe_files(self) -> tuple[str, str]:
        """Return the names of the files, and their checksums."""
        return self.name, self.sha256 if isinstance(self.sha256, str) else " ".join(self.sha256)


def describe_counts(train: DataCounts, dev: DataCounts) -> str:
    """Build the section on the data: files and checksums, then counts."""
    names = (train.files_name, "SHA-256")
    files = zip(names, train.describe_files(), dev.describe_files(), strict=True)
    counts = ([words, f"{a:,}", f"{b:,}"] for words, a, b in list_counts(train, dev))
    return f"## Data\n\n{tabulate(['', 'training', 'held-out'], [*files, *counts])}"


def tabulate_counts(train: DataCounts, dev: DataCounts) -> Table:
    """Tabulate the counts of the data for the report."""
    return Table(["", train.name, dev.name], list_counts(train, dev), title="Data")


def list_counts(train: DataCounts, dev: DataCounts) -> list[tuple[str, int, int]]:
    """Return rows (description, training count, held-out count) of the counts that aren't 0."""
    names = ((key, field.description) for key, field in type(train).model_fields.items())
    rows = [(words, getattr(train, key), getattr(dev, key)) for key, words in names if words]
    return [row for row in rows if row[1] or row[2]]


def write_descriptions(output: Path, report: Report, card: str) -> None:
    """Write the report and the card."""
    write_report(output / REPORT_FILE, report)
    write_file(output / CARD_FILE, card.encode())


def describe_training(facts: ModelFacts, *paragraphs: str) -> str:
    """Build the section on training: paragraphs, the initial model's files and the settings."""
    source = facts.record.source
    rows = [[name, sha256] for name, sha256 in source.get("sha256", {}).items()]
    if source.get("commit"):
        rows.append(["commit", source["commit"]])
    is_new = facts.record.settings["model"] is None
    files = [] if is_new else [tabulate(["file", "SHA-256"], rows)]
    settings = tabulate(["setting", "value"], [list(item) for item in facts.settings.items()])
    return "\n\n".join(["## Training", *paragraphs, *files, settings])


def describe_result(held_out: str, *paragraphs: str, warnings: Sequence[str]) -> str:
    """Build the section with the metrics on held-out examples, and a paragraph for each warning."""
    bold = (f"**{plain(warning)}**" for warning in warnings)
    return "\n\n".join([f"## Result\n\nOn {held_out}:", *paragraphs, *bold])


def tabulate(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Build a Markdown table."""
    lines = [columns, ["---"] * len(columns), *([plain(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def plain(text: str) -> str:
    """Escape a text for Markdown and HTML, in one line."""
    text = show(text, MAX_NAME_COLUMNS)
    text = "".join(f"\\{letter}" if letter in SPECIAL else letter for letter in text)
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
