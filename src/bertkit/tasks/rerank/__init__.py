"""Reranking: order passages by how well they answer a query; read `task.py` first.

Source: Nogueira and Cho 2019, "Passage Re-ranking with BERT": query and passage are read together,
and one output orders the passages.
"""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from bertkit.base.settings import NO_FLAG, redefine
from bertkit.tasks.settings import (
    MiningSettings,
    PairedSettings,
    PoolingName,
    TaskSettings,
    TextSettings,
)


class RerankSettings(MiningSettings, PairedSettings):
    """Settings of reranking."""

    pooling: PoolingName | None = redefine(TextSettings, "pooling")
    pairs: Annotated[Literal[True], NO_FLAG] = redefine(TextSettings, "pairs", True)
    max_length: Annotated[int, Field(ge=3)] = redefine(TaskSettings, "max_length", 256)

    ranks_candidates: ClassVar[bool] = True

    def choose_metric(self, labels: Sequence[str] = ()) -> str:
        """Return the gain of the ten best passages."""
        del labels
        return "ndcg@10"
