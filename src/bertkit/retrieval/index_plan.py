"""The plan of an index: everything that determines it, and the prompts of queries and passages."""

from dataclasses import dataclass, replace
from pathlib import Path

from bertkit.base.errors import SettingsError
from bertkit.checkpoints.bundled import describe_name
from bertkit.data.tables.settings import CorpusSettings
from bertkit.data.tables.text_files import TextFiles
from bertkit.inference.embeddings.embedder import Embedder
from bertkit.retrieval.settings import SearchSettings
from bertkit.retrieval.vector_file import Identity, VectorsFingerprint

FOLDER_FLAG = "`index_folder`"
ADVICE = "rebuild the index with `overwrite`"
QUERY_PROMPTS = ("query",)
PASSAGE_PROMPTS = ("document", "passage", "corpus")  # in the order of sentence-transformers


@dataclass(frozen=True)
class IndexPlan:
    """Everything that determines an index."""

    model: str | Path  # as the user named it
    corpus: TextFiles  # the texts, without empty rows
    folder: Path  # may not exist yet
    settings: SearchSettings  # with the precision that was taken
    passage_prompt: str  # prepended to each text of the corpus
    embedding: Identity  # everything that the vectors depend on

    @property
    def reading(self) -> CorpusSettings:
        """The settings for reading the corpus."""
        return CorpusSettings(**self.settings.model_dump(include=set(CorpusSettings.model_fields)))

    def check_embedding(self, found: Identity) -> None:
        """Raise SettingsError if existing vectors were made with another model or settings."""
        earlier = VectorsFingerprint(embedding=found, input=None)
        changes = earlier.list_changes(VectorsFingerprint(embedding=self.embedding, input=None))
        if not changes:
            return
        model = describe_name(str(self.embedding["model"]))
        if found.get("model_sha256") == self.embedding["model_sha256"]:  # under whatever name
            vectors, earlier_use = f"{model} with other settings", "settings"
        else:
            vectors = (
                f"{describe_name(str(found.get('model')))}, which differ from those of {model}"
            )
            earlier_use = "model and settings"
        raise SettingsError(
            f"{self.folder} has vectors of {vectors} ({'; '.join(changes)}); use the earlier"
            f" {earlier_use}, name another {FOLDER_FLAG}, or {ADVICE}"
        )


def make_plan(
    model: str | Path,
    corpus: TextFiles,
    folder: Path,
    settings: SearchSettings,
) -> tuple[IndexPlan, Embedder]:
    """Load the model; return the plan of the index and the embedder of queries."""
    without_prompt = settings.model_copy(update={"prompt": None, "prompt_name": None})
    embedder = Embedder.load(model, without_prompt)
    settings = settings.model_copy(update={"precision": embedder.engine.precision})
    passage_prompt = settings.passage_prompt
    if passage_prompt is None:
        passage_prompt = _choose_prompt(embedder, PASSAGE_PROMPTS)
    plan = IndexPlan(
        model=model,
        corpus=corpus,
        folder=folder,
        settings=settings,
        passage_prompt=passage_prompt,
        embedding=embedder.identity | {"prompt": passage_prompt},
    )
    name, prompt = settings.prompt_name, settings.prompt  # of queries
    if name is None:
        prompt = _choose_prompt(embedder, QUERY_PROMPTS) if prompt is None else prompt
    elif prompt is not None:
        raise SettingsError("prompt and prompt_name exclude each other; give one")
    elif name in embedder.prompts:
        prompt = embedder.prompts[name]
    else:
        known = ", ".join(embedder.prompts) or "none"
        raise SettingsError(f"this model has no prompt {name!r}; it has {known}")
    return plan, replace(embedder, text_encoder=replace(embedder.text_encoder, prompt=prompt))


def _choose_prompt(embedder: Embedder, names: tuple[str, ...]) -> str:
    """Return the first of these prompts that the model has, else its default prompt."""
    default = embedder.text_encoder.prompt
    return next((embedder.prompts[name] for name in names if name in embedder.prompts), default)
