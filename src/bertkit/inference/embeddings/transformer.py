"""A transformer of scikit-learn: texts in, vectors or a table of them out.

Only scikit-learn calls `__sklearn_tags__`; nothing here imports it.
"""

import sys
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from copy import copy
from importlib import import_module
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from bertkit.base.errors import MissingExtraError, SettingsError
from bertkit.base.settings import validate
from bertkit.inference.embeddings.settings import EmbedderSettings
from bertkit.inference.pipeline import Pipeline, check_several

Vectors = npt.NDArray[np.float32]
TABLES = ("default", "pandas", "polars")
OUTPUT_CONFIG = "_sklearn_output_config"  # where scikit-learn keeps what `set_output` chose


class TextTransformer(Pipeline[str, Vectors]):
    """A transformer of scikit-learn: texts in, vectors out; nothing is learned from the texts.

    Its parameters are what it was loaded with: `model` and the fields of `EmbedderSettings`.
    """

    params: Mapping[str, Any]

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Number of features of a vector."""

    def fit(self, texts: Iterable[str], y: object = None) -> Self:
        """Return the embedder unchanged; `texts` and `y` aren't read."""
        return self

    def transform(self, texts: Iterable[str]) -> Any:
        """Compute the vectors of a list, array or column of texts: `[num_texts, dimension]`.

        It is a float32 array, or what `set_output` or scikit-learn's `set_config` chose.
        """
        if not isinstance(texts, tuple):
            check_several(texts)
        vectors: Any = self(list(texts))  # an array, where other pipelines give a list
        kind, names = self._output, self.get_feature_names_out()
        if kind == "default":
            return vectors
        try:
            package = import_module(kind)
        except ImportError:
            raise MissingExtraError(
                f"set_output asks for a table of {kind}, which isn't installed: pip install {kind}"
            ) from None
        if kind == "polars":
            return package.DataFrame(vectors, schema=names.tolist(), orient="row")
        index = getattr(texts, "index", None) if hasattr(texts, "iloc") else None  # a Series
        return package.DataFrame(vectors, index=index, columns=names)

    def fit_transform(self, texts: Iterable[str], y: object = None) -> Any:
        """Compute the vectors of texts, as `transform`."""
        return self.fit(texts, y).transform(texts)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Choose what `transform` returns: default, pandas or polars; None changes nothing."""
        if transform is not None and transform not in TABLES:
            raise SettingsError(f"transform is {transform!r}; expected {', '.join(TABLES)}")
        if transform is not None:
            self._sklearn_output_config = {"transform": transform}
        return self

    @property
    def _output(self) -> str:
        """What `transform` returns, from `set_output` or else from scikit-learn's `set_config`."""
        chosen: Mapping[str, str] = vars(self).get(OUTPUT_CONFIG, {})
        if not chosen and (sklearn := sys.modules.get("sklearn")) is not None:
            chosen = {"transform": sklearn.get_config()["transform_output"]}
        return chosen.get("transform", "default")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return what the embedder was loaded with, by name."""
        return dict(self.params)

    def set_params(self, **params: Any) -> Self:
        """Load the embedder anew with other parameters; on an error it stays as it was."""
        known = self.get_params()
        if unknown := sorted(params.keys() - known.keys()):
            raise SettingsError(
                f"there is no parameter {', '.join(unknown)}; there are {', '.join(known)}"
            )
        settings = {**known, **params}
        model = settings.pop("model")
        loaded = self.load(model, validate(EmbedderSettings, settings, "set_params"))
        kept = {name: value for name, value in vars(self).items() if name == OUTPUT_CONFIG}
        vars(self).clear()
        vars(self).update(vars(loaded) | kept)
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
