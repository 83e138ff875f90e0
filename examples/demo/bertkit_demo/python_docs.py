"""The documentation that comes with Python: a corpus that needs no download.

Its text is the language reference's topics (`pydoc_data.topics`) and the docstrings of the standard
library and of the demo's dependencies, PyTorch among them, if installed. Source files are read,
never imported. A document is one topic, or all docstrings of one module; its group is the top-level
package, and whole packages are held out.
"""

import os
import re
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import NamedTuple

from bertkit.base.errors import pluralize
from bertkit.base.files import durable_file, durable_folder
from bertkit.base.progress import announce
from bertkit.data.documents import Document
from bertkit.recipes.prepare.work_unit import choose_split
from bertkit.recipes.settings import PrepareSettings
from bertkit.tokenization.words import SURROGATE
from bertkit_demo.docstrings import find_docstrings, find_paragraphs

TOPICS = "pydoc_data"
TESTS = {"test", "tests"}
PROGRAMS = {"idlelib", "turtledemo", "lib2to3", "ensurepip"}
COPIES = {"_vendor", "_vendored", "vendor"}
NO_PACKAGES = {"site-packages", "dist-packages", "lib-dynload", "__pycache__", TOPICS}
OWN = {"bertkit", "bertkit-minilm"}
SKIPPED_FOLDERS = frozenset(TESTS | PROGRAMS | COPIES | NO_PACKAGES)


class Module(NamedTuple):
    """One source file of a package."""

    package: str
    name: str
    path: Path


@dataclass(frozen=True)
class Corpus:
    """The text that `write_corpus` wrote.

    Attributes:
        training: the file of the packages that are trained on.
        held_out: the file of those that aren't.
    """

    training: Path
    held_out: Path

    @classmethod
    def of(cls, folder: Path) -> "Corpus":
        """The files of a folder."""
        return cls(folder / "training.txt", folder / "held-out.txt")


def write_corpus(folder: Path, share: float) -> Corpus:
    """Write the documentation as two text files, a line a paragraph.

    Args:
        folder: the folder for both, written atomically; one that exists is kept as it is.
        share: of the packages that are held out, each of them whole.

    Raises:
        StorageError: writing failed.
    """
    if not folder.exists():
        settings, skipped = PrepareSettings(held_out=share), list[str]()
        with (
            durable_folder(folder) as place,
            durable_file(Corpus.of(place).training) as training,
            durable_file(Corpus.of(place).held_out) as held_out,
        ):
            for document in read_documents(skipped):
                split = choose_split(document.group, settings)
                text = "\n".join(document.lines) + "\n\n"
                (training if split == "train" else held_out).write(text.encode())
        if skipped:
            sources = pluralize(len(skipped), "Python source")
            announce(f"left out {sources} that can't be read or parsed, first {skipped[0]}")
    return Corpus.of(folder)


def read_documents(skipped: list[str]) -> Iterator[Document]:
    """Yield the topics, then modules by package and name; repeated paragraphs are dropped.

    Args:
        skipped: takes the name and the fault of each source that can't be read.
    """
    seen: set[str] = set()
    for group, texts in _read_texts(skipped):
        paragraphs = [text for docstring in texts for text in find_paragraphs(docstring)]
        mended = (SURROGATE.sub("\ufffd", text) for text in dict.fromkeys(paragraphs))
        new = tuple(text for text in mended if text not in seen)
        seen.update(new)
        if new:
            yield Document(new, group)


def _read_texts(skipped: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield the group and the raw texts of each document."""
    for _, text in sorted(read_topics(skipped).items()):
        yield TOPICS, [text]
    for module in find_modules():
        try:
            content = module.path.read_bytes()
            if b'"""' in content or b"'''" in content:  # fast, and loses very little
                yield module.package, list(find_docstrings(content.decode("utf-8")))
        except (OSError, ValueError, SyntaxError) as error:
            skipped.append(f"{module.name} ({error})")


def read_topics(skipped: list[str]) -> dict[str, str]:
    """Return the language reference's topics by name; some systems ship Python without them."""
    try:
        from pydoc_data.topics import topics
    except ImportError as error:
        skipped.append(f"{TOPICS} ({error})")
        return {}
    return topics


def find_modules() -> list[Module]:
    """Return the modules of the standard library and of the demo's dependencies, sorted."""
    modules = set(_standard_library())
    for package in find_dependencies("bertkit-demo"):
        if package.name not in OWN:
            modules.update(_modules_of(package))
    return sorted(modules)


def find_dependencies(root: str) -> list[Distribution]:
    """Return a distribution's installed dependencies, direct and indirect, without extras."""
    found: dict[str, Distribution] = {}
    names = [root]
    while names:
        name = re.sub(r"[-_.]+", "-", names.pop()).lower()
        if name in found:
            continue
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:  # only needed on another system or Python version
            continue
        for requirement in found[name].requires or []:
            if "extra ==" not in requirement:
                names += re.findall(r"^[\w.-]+", requirement)
    return [package for name, package in sorted(found.items()) if name != root]


def _modules_of(package: Distribution) -> Iterator[Module]:
    for path in package.files or []:
        is_wanted = SKIPPED_FOLDERS.isdisjoint(path.parts) and ".." not in path.parts
        if is_wanted and path.suffix == ".py":
            place = Path(str(package.locate_file(path)))
            yield Module(_package_name(path.parts), path.as_posix(), place)


def _standard_library() -> Iterator[Module]:
    root = Path(sysconfig.get_path("stdlib"))
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in SKIPPED_FOLDERS]
        for name in names:
            if name.endswith(".py"):
                path = Path(folder, name)
                relative = path.relative_to(root)
                yield Module(_package_name(relative.parts), relative.as_posix(), path)


def _package_name(parts: tuple[str, ...]) -> str:
    """Return the import name of a file's top-level package."""
    return parts[0].removesuffix(".py")
