"""One foreign folder that is broken or hostile, and what bertkit must say to it."""

from dataclasses import dataclass, field

from bertkit.base.errors import BertkitError


@dataclass(frozen=True)
class Case:
    """A folder to be written and opened.

    Attributes:
        defect: the class of defect, in a few words; at most 20 cases share it.
        number: tells cases of one defect apart.
        files: content by path inside the folder.
        error: exactly this class is raised; None where opening is the documented acceptance.
        match: a regular expression that the message holds; empty for an acceptance.
        links: symbolic links by path inside the folder; `{folder}` in a target is the folder,
            `{outside}` a folder beside it that holds whole and harmless files.
    """

    defect: str
    number: int
    files: dict[str, bytes]
    error: type[BertkitError] | None
    match: str
    links: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.defect} {self.number}"
