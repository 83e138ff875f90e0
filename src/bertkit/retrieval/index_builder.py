"""Build the index of a corpus: its vectors and texts.

An interrupted build resumes with the same command: `bertkit embed` computes the vectors, and the
record, without which the folder isn't an index, is written last.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bertkit.base.checksums import record_file
from bertkit.base.errors import (
    DamagedFileError,
    InputError,
    ResumeError,
    SettingsError,
    storage_errors,
)
from bertkit.base.files import remove_folder
from bertkit.base.output import LOCK_FILE
from bertkit.base.progress import announce, show_progress
from bertkit.base.wording import pluralize
from bertkit.batch_jobs.embed.manifest import VectorsFingerprint
from bertkit.batch_jobs.embed.run import EmbedResult, embed
from bertkit.batch_jobs.embed.settings import EmbedSettings
from bertkit.batch_jobs.embed.unfinished import read_record
from bertkit.data.tables.texts import TextRow
from bertkit.retrieval.index_files import write_texts
from bertkit.retrieval.index_plan import IndexPlan
from bertkit.retrieval.index_record import (
    FILES_WITH_IDS,
    RECORD_FILE,
    VECTORS_FILE,
    CorpusRecord,
    IndexRecord,
)
from bertkit.retrieval.index_vectors import CELLS_FOLDER

# The stems of all file names in an index folder; the lock file's name starts with a dot.
OWN_NAMES = {name.split(".")[0] for name in (RECORD_FILE, *FILES_WITH_IDS, CELLS_FOLDER, LOCK_FILE)}


def find_index(plan: IndexPlan) -> IndexRecord | None:
    """Return the record of an existing index that matches the plan; None if one must be built."""
    if plan.settings.rebuild:
        return None
    record = IndexRecord.read(plan.folder)
    if record is None:
        return None
    plan.check_embedding(record.embedding)
    is_same = not record.is_older and record.corpus.describes(plan.corpus, plan.reading)
    return record if is_same else None


def read_embedding(folder: Path) -> dict[str, Any]:
    """Return what the vectors of an index depend on, finished or not; empty if there are none."""
    if (record := IndexRecord.read(folder)) is not None:
        return record.embedding
    with _advising_to_remove(folder):
        state = read_record(folder / VECTORS_FILE)
    return {} if state is None else state.beginning.embedding


def check_folder(folder: Path) -> None:
    """Check that building an index in a folder would replace nothing but an older index."""
    with storage_errors(folder, "read"):
        names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    is_index = LOCK_FILE in names or names >= {RECORD_FILE, VECTORS_FILE}
    if names and not (is_index and {name.split(".")[0] for name in names} <= OWN_NAMES):
        raise SettingsError(
            f"{folder} holds other files, which the index could replace; name a new or empty"
            " --index-folder"
        )


def build_index(plan: IndexPlan) -> IndexRecord:
    """Embed the corpus, resuming if possible, and store its texts.

    The caller must hold the lock of the folder.
    """
    can_resume = _can_resume(plan)
    corpus = CorpusRecord.of(plan.corpus, plan.reading)
    earlier = None if plan.settings.rebuild else IndexRecord.read(plan.folder)
    if earlier is not None:
        cause = "has an older index" if earlier.is_older else "changed since it was embedded"
        announce(f"{plan.corpus.name} {cause}; embedding it again")
    remove_folder(plan.folder / RECORD_FILE)
    result = _embed(plan, restart=not can_resume)
    if not result.num_rows:
        raise InputError(f"{plan.corpus.name} has no texts")
    files = {VECTORS_FILE: record_file(plan.folder / VECTORS_FILE)}
    files |= write_texts(_read_rows(plan), plan.folder, plan.corpus.has_ids)
    announce(_describe(plan, result))
    if not corpus.describes(plan.corpus, plan.reading):
        raise ResumeError(f"{plan.corpus.name} changed while it was read; run the command again")
    record = IndexRecord(
        corpus=corpus,
        embedding=plan.embedding,
        num_rows=result.num_rows,
        dimension=result.dimension,
        counts=asdict(result.counts),
        files=files,
    )
    record.save(plan.folder / RECORD_FILE)  # marks the index as complete
    return record


def _describe(plan: IndexPlan, result: EmbedResult) -> str:
    """Describe in one line what was embedded and which data problems were counted."""
    num_blank = plan.corpus.num_blank
    problems = [f"{pluralize(num_blank, 'empty row')} left out"] if num_blank else []
    problems += [
        f"{number:,} {name.replace('_', ' ')}"
        for name, number in asdict(result.counts).items()
        if number and name not in ("texts", "tokens")
    ]
    line = f"{plan.corpus.name}: {pluralize(result.num_rows, 'text')} embedded"
    return line + (f" ({', '.join(problems)})" if problems else "")


def _can_resume(plan: IndexPlan) -> bool:
    """Whether an interrupted build of the same vectors can be resumed."""
    output = plan.folder / VECTORS_FILE
    wanted = VectorsFingerprint(embedding=plan.embedding, input=plan.corpus.identity())
    with _advising_to_remove(plan.folder):
        state = read_record(output)
    if state is None:
        return not plan.settings.rebuild
    if not plan.settings.rebuild:
        plan.check_embedding(state.beginning.embedding)
    return not state.beginning.list_changes(wanted)


def _embed(plan: IndexPlan, *, restart: bool) -> EmbedResult:
    values = plan.settings.model_dump(include=set(EmbedSettings.model_fields))
    settings = EmbedSettings(
        **values
        | {
            "prompt": plan.passage_prompt,
            "prompt_name": None,
            "id_column": None,  # the index stores ids
            "restart": restart,
            "overwrite": True,
        }
    )
    with _advising_to_remove(plan.folder):
        return embed(
            plan.model,
            plan.corpus,
            plan.folder / VECTORS_FILE,
            settings,
            device=plan.device,
            revision=plan.revision,
        )


@contextmanager
def _advising_to_remove(folder: Path) -> Iterator[None]:
    """Replace the advice of `bertkit embed` about damaged files with that for an index."""
    try:
        yield
    except DamagedFileError as error:
        problem = str(error).partition(";")[0]
        raise DamagedFileError(f"{problem}; remove {folder} to start over") from None


def _read_rows(plan: IndexPlan) -> Iterator[tuple[int, TextRow]]:
    """Yield the rows of the corpus with their numbers, showing progress."""
    files = plan.corpus
    with show_progress("Storing the texts", files.size_bytes, is_bytes=True) as progress:
        for number, row in files.numbered_rows():
            progress.advance(row.num_bytes)
            yield number, row
