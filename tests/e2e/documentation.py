"""What the README and the guides show: the blocks of code on each page."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FENCE = "```"


class Block(NamedTuple):
    """A block of code.

    Attributes:
        language: the word behind the fence, or "".
        heading: the last heading above it.
        line: number of its first line on the page, from 1.
        code: its lines.
    """

    language: str
    heading: str
    line: int
    code: str


def list_pages() -> list[str]:
    """README, guides and the page on scale, by their paths in the repository."""
    guides = sorted((ROOT / "docs/guide").glob("*.md"))
    return ["README.md", "docs/scale.md", *(str(path.relative_to(ROOT)) for path in guides)]


def read_blocks(page: str) -> Iterator[Block]:
    """The blocks of a page, in order."""
    heading, language, code = "", None, []
    for number, line in enumerate((ROOT / page).read_text(encoding="utf-8").splitlines(), start=1):
        if line.startswith(FENCE):
            if language is None:
                language, code = line.removeprefix(FENCE).strip(), []
            else:
                yield Block(language, heading, number - len(code), "\n".join(code))
                language = None
        elif language is not None:
            code.append(line)
        elif line.startswith("#"):
            heading = line.lstrip("# ")
    assert language is None, f"{page}: a block has no end"
