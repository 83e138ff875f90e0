"""The plan of an index: model, corpus, prompts and settings."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bertkit.base.errors import SettingsError
from bertkit.batch_jobs.embed.manifest import VectorsFingerprint
from bertkit.data.tables.settings import CorpusSettings
from bertkit.data.tables.text_files import TextFiles
from bertkit.embeddings.embedder import Embedder
from bertkit.retrieval.settings import SearchSettings

QUERY_PROMPTS = ("query",)
PASSAGE_PROMPTS = ("document", "passage", "corpus")  # in the order of sentence-transformers


@dataclass(frozen=True)
class IndexPlan:
    """Everything that determines an index.

    Attributes:
        model: the model as the user named it.
        corpus: the texts, without empty rows.
        folder: the index folder, which may not exist yet.
        device: auto, cpu, cuda or cuda:N.
        revision: a branch, tag or commit of a model of the Hub.
        settings: the search settings, with the precision that was taken.
        passage_prompt: the prompt prepended to each text of the corpus.
        embedding: everything that the vectors of the corpus depend on.
    """

    model: str | Path
    corpus: TextFiles
    folder: Path
    device: str
    revision: str | None
    settings: SearchSettings
    passage_prompt: str
    embedding: dict[str, Any]

    @property
    def reading(self) -> CorpusSettings:
        """The settings for reading the corpus."""
        return CorpusSettings(**self.settings.model_dump(include=set(CorpusSettings.model_fields)))

    def check_embedding(self, found: dict[str, Any]) -> None:
        """Raise SettingsError if existing vectors were made with another model or settings."""
        earlier = VectorsFingerprint(embedding=found, input=None)
        changes = earlier.list_changes(VectorsFingerprint(embedding=self.embedding, input=None))
        if not changes:
            return
        model = self.embedding["model"]
        if found.get("model_sha256") == self.embedding["model_sha256"]:  # under whatever name
            vectors, earlier_use = f"{model} with other settings", "settings"
        else:
            vectors = f"{found.get('model')}, which differ from those of {model}"
            earlier_use = "model and settings"
        raise SettingsError(
            f"{self.folder} has vectors of {vectors} ({'; '.join(changes)}); use the earlier"
            f" {earlier_use}, name another --index-folder, or rebuild the index with --rebuild"
        )


def make_plan(
    model: str | Path,
    corpus: TextFiles,
    folder: Path,
    settings: SearchSettings,
    *,
    device: str,
    revision: str | None,
) -> tuple[IndexPlan, Embedder]:
    """Load the model; return the plan of the index and the embedder of queries."""
    without_prompt = settings.model_copy(update={"prompt": None, "prompt_name": None})
    embedder = Embedder.load(model, without_prompt, device=device, revision=revision)
    settings = settings.model_copy(update={"precision": embedder.engine.precision})
    passage_prompt = settings.passage_prompt
    if passage_prompt is None:
        passage_prompt = _choose_prompt(embedder, PASSAGE_PROMPTS)
    plan = IndexPlan(
        model=model,
        corpus=corpus,
        folder=folder,
        device=device,
        revision=revision,
        settings=settings,
        passage_prompt=passage_prompt,
        embedding=embedder.identity | {"prompt": passage_prompt},
    )
    encoder = replace(embedder.text_encoder, prompt=_find_query_prompt(embedder, settings))
    return plan, replace(embedder, text_encoder=encoder)


def _find_query_prompt(embedder: Embedder, settings: SearchSettings) -> str:
    """Return the prompt for queries."""
    name = settings.prompt_name
    if name is None:
        chosen = settings.prompt
        return _choose_prompt(embedder, QUERY_PROMPTS) if chosen is None else chosen
    if settings.prompt is not None:
        raise SettingsError("prompt and prompt_name exclude each other; give one")
    if name not in embedder.prompts:
        known = ", ".join(embedder.prompts) or "none"
        raise SettingsError(f"this model has no prompt {name!r}; it has {known}")
    return embedder.prompts[name]


def _choose_prompt(embedder: Embedder, names: tuple[str, ...]) -> str:
    """Return the first of these prompts that the model has, else its default prompt."""
    default = embedder.text_encoder.prompt
    return next((embedder.prompts[name] for name in names if name in embedder.prompts), default)
