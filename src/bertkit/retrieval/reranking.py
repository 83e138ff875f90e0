"""Reranking of what a search found."""

from collections.abc import Sequence
from dataclasses import replace

from bertkit.inference.reranker import Reranker
from bertkit.retrieval.hits import Hit


def rerank(reranker: Reranker, query: str, hits: Sequence[Hit]) -> list[Hit]:
    """Order hits by the model's value, the highest first; equal ones keep their order."""
    ranked = reranker.rank(query, [hit.text for hit in hits])
    return [replace(hits[one.row], score=one.score, reranked=one.score) for one in ranked]
