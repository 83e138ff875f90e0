"""The methods by which scikit-learn takes an embedder as a step of a pipeline.

Only scikit-learn calls `__sklearn_tags__`; nothing else here needs it.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from copy import copy
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from bertkit.base.errors import SettingsError
from bertkit.base.settings import validate
from bertkit.embeddings.settings import EmbedderSettings
from bertkit.tokenization.tokenizer import check_several

LOADING = ("path", "device", "revision")  # parameters that aren't fields of the settings


class TextTransformer(ABC):
    """A transformer of scikit-learn: texts in, vectors out; nothing is learned from the texts.

    Its parameters are what it was loaded with: `path`, `device`, `revision` and the fields of
    `EmbedderSettings`.
    """

    params: Mapping[str, Any]

    @classmethod
    @abstractmethod
    def load(
        cls,
        path: str | Path | None = None,
        settings: EmbedderSettings | None = None,
        *,
        device: str = "auto",
        revision: str | None = None,
    ) -> Self:
        """Load a model with settings."""

    @abstractmethod
    def encode(self, texts: list[str]) -> npt.NDArray[np.float32]:
        """Compute the vectors of texts."""

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Number of features of a vector."""

    def fit(self, texts: Iterable[str], y: object = None) -> Self:
        """Return the embedder unchanged; `texts` and `y` aren't read."""
        return self

    def transform(self, texts: Iterable[str]) -> npt.NDArray[np.float32]:
        """Compute the vectors of texts, as `encode`: `[num_texts, dimension]`.

        Args:
            texts: a list, an array or a column of texts.

        Raises:
            InputError: it is one text, a table, or has something else than texts.
        """
        check_several(texts)
        return self.encode(list(texts))

    def fit_transform(self, texts: Iterable[str], y: object = None) -> npt.NDArray[np.float32]:
        """Compute the vectors of texts, as `transform`."""
        return self.fit(texts, y).transform(texts)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return what the embedder was loaded with, by name."""
        return dict(self.params)

    def set_params(self, **params: Any) -> Self:
        """Load the embedder anew with other parameters; those that aren't given stay.

        Raises:
            SettingsError: there is no such parameter.
            BertkitError: as in `load`; the embedder then stays as it was.
        """
        if unknown := sorted(set(params) - set(self.params)):
            raise SettingsError(
                f"there is no parameter {', '.join(unknown)}; there are {', '.join(self.params)}"
            )
        wanted = {**self.params, **params}
        settings = {name: value for name, value in wanted.items() if name not in LOADING}
        chosen = validate(EmbedderSettings, settings, "set_params")
        path, device, revision = (wanted[name] for name in LOADING)
        loaded = self.load(path, chosen, device=device, revision=revision)
        vars(self).clear()
        vars(self).update(vars(loaded), params=wanted)
        return self

    def get_feature_names_out(self, input_features: object = None) -> npt.NDArray[np.object_]:
        """Return a name for each feature, such as embedder0."""
        name = type(self).__name__.lower()
        return np.array([f"{name}{index}" for index in range(self.dimension)], dtype=object)

    def __sklearn_clone__(self) -> Self:
        """Return an embedder with parameters of its own, which shares the loaded model."""
        return copy(self)

    def __sklearn_is_fitted__(self) -> bool:
        """Return True: a loaded embedder is ready."""
        return True

    def __sklearn_tags__(self) -> Any:
        """Describe what it takes: texts, in one dimension."""
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(),
            input_tags=InputTags(one_d_array=True, two_d_array=False, string=True),
            requires_fit=False,
        )
