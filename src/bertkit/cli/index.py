"""`bertkit index add`, `update`, `delete` and `info`: an index of texts, kept in one file."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from bertkit.base.errors import InputError, MissingFileError, pluralize
from bertkit.base.output import check_standard_output
from bertkit.base.progress import announce
from bertkit.cli.output import print_result
from bertkit.cli.texts import NamedModel, Words, choose_model
from bertkit.reports.text import show
from bertkit.retrieval.hits import Changes, IndexInfo
from bertkit.retrieval.older_index import remove_older_index
from bertkit.retrieval.settings import IndexSettings, QuerySettings

if TYPE_CHECKING:
    from bertkit.retrieval.index import Index

Where = Annotated[str | None, Parameter(help=QuerySettings.model_fields["where"].description)]


def index_add(
    index: Path,
    /,
    *inputs: Words,
    model: NamedModel = None,
    settings: IndexSettings = IndexSettings(),
    json: bool = False,
) -> None:
    """Add texts to an index, or replace those with the same ids; the file is made if needed.

    Each row of a table is a document, and so is each plain text or Markdown file; a long one is
    divided into passages. Columns other than those of text and id become fields, for --where. The
    same text is embedded only once. If the command is interrupted, what was stored stays; the same
    command continues.

    **Examples**

        bertkit index add notes.bertkit notes/ "letters/*.md"

        bertkit index add faq.bertkit faq.csv --text-column answer --id-column number

    Args:
        index: File of the index.
        inputs: Files, folders or globs of texts.
        json: Print the counts as one JSON object.
    """
    if not inputs:
        raise InputError("give files or folders of texts to add")
    with open_index(index, model, settings, creates=True) as opened:
        changes = opened.add([Path(name) for name in inputs])
        print_result(changes, Changes.describe, json=json)


def index_update(
    index: Path,
    /,
    *,
    corpus: Annotated[list[str], Parameter(negative="")],
    model: NamedModel = None,
    settings: IndexSettings = IndexSettings(),
    json: bool = False,
) -> None:
    """Bring an index up to date with files: add what is new or changed, delete what is gone.

    Only changed files are read, and only changed texts are embedded. What `bertkit index add`
    stored stays. If the command is interrupted, the same command continues.

    **Examples**

        bertkit index update notes.bertkit --corpus notes/ --corpus "letters/*.md"

    Args:
        index: File of the index; it is made if needed.
        corpus: A file, folder or glob of texts. May be given several times.
        json: Print the counts as one JSON object.
    """
    with open_index(index, model, settings, creates=True) as opened:
        print_result(opened.update(corpus), Changes.describe, json=json)


def index_delete(
    index: Path,
    /,
    *,
    ids: Annotated[list[str] | None, Parameter(name="--id", negative="")] = None,
    where: Where = None,
    json: bool = False,
) -> None:
    """Delete documents from an index, by their ids or their fields.

    **Examples**

        bertkit index delete faq.bertkit --id 17 --id 18

        bertkit index delete faq.bertkit --where "year < 2010"

    Args:
        index: File of the index.
        ids: Id of a document. May be given several times.
        json: Print the counts as one JSON object.
    """
    with open_index(index) as opened:
        unknown = [show(one) for one in ids or () if opened.get(one) is None]
        facts = {"deleted": opened.delete(ids, where=where), "documents": len(opened)}
    line = f"{pluralize(facts['deleted'], 'document')} deleted, {facts['documents']:,} left"
    if unknown:
        announce(f"no document has the id {', '.join(unknown)}")
    print_result(line, str, json=json, facts=facts)


def index_info(index: Path, /, *, json: bool = False) -> None:
    """Describe an index: documents, passages, model, fields, size, last change.

    **Examples**

        bertkit index info notes.bertkit

    Args:
        index: File of the index.
        json: Print one JSON object.
    """
    with open_index(index) as opened:
        print_result(opened.info(), IndexInfo.describe, json=json)


def open_index(
    place: Path,
    model: str | None = None,
    settings: IndexSettings = IndexSettings(),
    *,
    creates: bool = False,
) -> "Index":
    """Open an index, or one to be made, with --model or else the bundled model."""
    check_standard_output()
    if creates:
        remove_older_index(place)
    elif not place.exists():
        raise MissingFileError(f"{place} doesn't exist; `bertkit index add {place} FILE` makes it")
    if model is not None or not place.exists():
        model = choose_model(model, "vectors")
    from bertkit.retrieval.index import Index

    return Index(place, model=model, settings=settings)
