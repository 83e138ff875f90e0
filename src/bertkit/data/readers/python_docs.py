"""The documentation that comes with Python: a corpus that needs no download.

Its text is the language reference's topics (`pydoc_data.topics`) and the docstrings of the standard
library and of bertkit's own dependencies, if installed. Source files are read, never imported.
A document is one topic, or all docstrings of one module; its group is the top-level package, so
that whole packages go to the same split.
"""

import os
import re
import sysconfig
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import NamedTuple

from bertkit.data.docstrings import find_docstrings, find_paragraphs
from bertkit.data.readers.document import Document, ReadReport
from bertkit.data.readers.lines import replace_lone_surrogates
from bertkit.data.readers.settings import ReaderSettings
from bertkit.data.readers.sources import TextSource

TOPICS = "pydoc_data"
TESTS = {"test", "tests"}
PROGRAMS = {"idlelib", "turtledemo", "lib2to3", "ensurepip"}
COPIES = {"_vendor", "_vendored", "vendor"}
NO_PACKAGES = {"site-packages", "dist-packages", "lib-dynload", "__pycache__", TOPICS}
SKIPPED_FOLDERS = frozenset(TESTS | PROGRAMS | COPIES | NO_PACKAGES)


class Module(NamedTuple):
    """One source file of a package."""

    package: str
    name: str
    path: Path


def read_documents(
    source: TextSource, settings: ReaderSettings, report: ReadReport
) -> Iterator[Document]:
    """Yield the topics, then modules by package and name; repeated paragraphs are dropped."""
    seen: set[str] = set()
    for name, group, texts in _read_texts(source, report):
        paragraphs = [text for docstring in texts for text in find_paragraphs(docstring)]
        mended = (replace_lone_surrogates(text, name, report) for text in dict.fromkeys(paragraphs))
        new = [text for text in mended if text not in seen]
        seen.update(new)
        if len(new) < len(paragraphs):
            report.add("repeated-paragraph", name, len(paragraphs) - len(new))
        if new:
            yield Document(tuple(new), group)


def _read_texts(source: TextSource, report: ReadReport) -> Iterator[tuple[str, str, list[str]]]:
    """Yield name, group and raw texts of each document."""
    for name, text in sorted(read_topics(report).items()):
        yield f"{TOPICS}/{name}", TOPICS, [text]
    for module in find_modules():
        try:
            content = module.path.read_bytes()
            if source.advance is not None:
                source.advance(len(content))
            if b'"""' in content or b"'''" in content:  # fast, and loses very little
                texts = list(find_docstrings(content.decode("utf-8")))
                yield module.name, module.package, texts
        except (OSError, ValueError, SyntaxError) as error:
            report.add("unreadable-source", f"{module.name} ({error})")


def read_topics(report: ReadReport) -> dict[str, str]:
    """Return the language reference's topics by name; some systems ship Python without them."""
    try:
        from pydoc_data.topics import topics
    except ImportError as error:
        report.add("unreadable-source", f"{TOPICS} ({error})")
        return {}
    return topics


def find_modules(root: str = "bertkit") -> list[Module]:
    """Return the modules of the standard library and a distribution's dependencies, sorted."""
    modules = set(_standard_library())
    for package in find_dependencies(root):
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
