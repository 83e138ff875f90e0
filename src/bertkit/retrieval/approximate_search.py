"""Approximate nearest-neighbor search with a faiss IVF index.

faiss clusters the vectors into cells around centroids and quantizes each number to one byte. A
query probes the few cells nearest to it; the candidates found are rescored exactly, so a row may
be missed but a score is never wrong. The index is stored as plain arrays: faiss's own file format
is never read, because its reader trusts the file.

Source: Sivic and Zisserman 2003 (cells); Johnson, Douze and Jégou 2017 (faiss).
"""

import math
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from bertkit.base.errors import DamagedFileError, MissingExtraError, SettingsError, pluralize
from bertkit.base.extras import describe_install
from bertkit.base.progress import announce, show_progress
from bertkit.inference.embeddings.settings import Similarity
from bertkit.inference.embeddings.similarity import LEAST_NORM
from bertkit.reports.text import format_percent
from bertkit.retrieval.exact_search import ExactSearch, SearchCandidates

ROWS_OF_A_CELL = 40  # minimum average
TRAINING_ROWS_OF_A_CELL = 64  # faiss's own 256 took four times as long, for the same recall
TRAINING_ROUNDS = 10
NUM_ROWS_AT_ONCE = 16_384
CANDIDATES_PER_RESULT = 4  # quantization to bytes may swap rows with close scores
LEAST_RECALL = 0.99
NUM_SAMPLES = 256
SAMPLE_TOP_K = 10
SEED = 0


@dataclass(frozen=True)
class Cells:
    """The clusters of an approximate index; it needs nothing else but the vectors."""

    centers: NDArray[np.float32]  # `[cells, features]`, the centroids
    ranges: NDArray[np.float32]  # `[2, features]`, minimum and width of quantization
    sizes: NDArray[np.int64]  # `[cells]`, rows in each cell
    rows: NDArray[np.int64]  # `[rows]`, row numbers of the vectors, cell by cell
    codes: NDArray[np.uint8]  # `[rows, features]`, quantized, in the same order
    num_probes: int  # cells searched per query
    recall: float  # of the true top ten, at build time, with the corpus's vectors as queries

    def check(self, num_rows: int, num_features: int) -> None:
        """Check that the arrays are consistent, because faiss doesn't check them."""
        num_cells = len(self.centers)
        shapes = (
            (self.centers, (num_cells, num_features), np.float32),
            (self.ranges, (2, num_features), np.float32),
            (self.sizes, (num_cells,), np.int64),
            (self.rows, (num_rows,), np.int64),
            (self.codes, (num_rows, num_features), np.uint8),
        )
        fits = (
            all(array.shape == shape and array.dtype == kind for array, shape, kind in shapes)
            and 0 < self.num_probes <= num_cells
            and bool(((self.sizes >= 0) & (self.sizes <= num_rows)).all())  # no sum overflows
            and int(self.sizes.sum()) == num_rows
            and np.array_equal(np.sort(self.rows), np.arange(num_rows))
        )
        if not fits:
            raise DamagedFileError(
                f"the approximate index doesn't fit {num_rows:,} vectors of {num_features}"
                " features; rebuild it with `overwrite`"
            )


class ApproximateSearch:
    """Finds most of the nearest rows in a fraction of the time of exact search.

    The vectors are float32 `[rows, features]`, those that the cells were built from for the
    similarity.
    """

    def __init__(self, cells: Cells, vectors: NDArray[np.float32], similarity: Similarity) -> None:
        check_approximate(similarity)
        cells.check(*vectors.shape)
        self.cells = cells
        self._vectors = vectors
        self._similarity = similarity
        faiss = load_faiss()
        self._index = _make_index(faiss, vectors.shape[1], len(cells.centers), similarity)
        self._index.quantizer.add(cells.centers)
        faiss.copy_array_to_vector(cells.ranges.ravel(), self._index.sq.trained)
        self._index.is_trained = True
        stops = np.cumsum(cells.sizes)
        for number, (size, stop) in enumerate(zip(cells.sizes, stops, strict=True)):
            part = slice(int(stop - size), int(stop))
            rows, codes = (np.ascontiguousarray(each[part]) for each in (cells.rows, cells.codes))
            self._index.invlists.add_entries(
                number, int(size), faiss.swig_ptr(rows), faiss.swig_ptr(codes)
            )
        self._index.ntotal = len(vectors)

    @classmethod
    def build(
        cls, vectors: NDArray[np.float32], similarity: Similarity, exact: ExactSearch
    ) -> Self:
        """Cluster vectors `[rows, features]`, and tune how many cells a query must probe.

        The exact search over the same vectors measures the recall.
        """
        check_approximate(similarity)
        faiss = load_faiss()
        num_rows, num_features = vectors.shape
        num_cells = max(1, min(int(2 * math.sqrt(num_rows)), num_rows // ROWS_OF_A_CELL))
        index = _make_index(faiss, num_features, num_cells, similarity)
        announce(f"Clustering {pluralize(num_rows, 'vector')} into {pluralize(num_cells, 'cell')}")
        index.train(_prepare(_sample(vectors, num_cells * TRAINING_ROWS_OF_A_CELL), similarity))
        with show_progress("Filling the cells", num_rows) as progress:
            for start in range(0, num_rows, NUM_ROWS_AT_ONCE):
                block = vectors[start : start + NUM_ROWS_AT_ONCE]
                index.add(_prepare(block, similarity))
                progress.advance(len(block))
        search = cls(_take_apart(faiss, index), vectors, similarity)
        samples = _sample(vectors, NUM_SAMPLES)
        truth, num_probes = _list_pairs(exact.find(samples, SAMPLE_TOP_K)), 1
        while True:  # the fewest probes, doubled from 1, that find enough
            found = _list_pairs(search.find(samples, SAMPLE_TOP_K, num_probes=num_probes))
            recall = len(truth & found) / len(truth)
            if recall >= LEAST_RECALL or num_probes == num_cells:
                break
            num_probes = min(2 * num_probes, num_cells)
        search.cells = replace(search.cells, num_probes=num_probes, recall=recall)
        if recall < LEAST_RECALL:
            announce(
                f"The approximate index finds only {format_percent(recall)} of the true top ten,"
                " because one byte per number is too coarse for these vectors; an exact index"
                " finds all"
            )
        return search

    def find(
        self, queries: NDArray[np.float32], top_k: int, *, num_probes: int | None = None
    ) -> SearchCandidates:
        """Return the best rows found for each query, in order; may be fewer than `top_k`.

        The queries are float32 `[queries, features]`, finite; `num_probes` is by default the tuned
        number.
        """
        self._index.nprobe = num_probes or self.cells.num_probes
        num_candidates = min(len(self._vectors), CANDIDATES_PER_RESULT * top_k)
        rows = self._index.search(_prepare(queries, self._similarity), num_candidates)[1]
        numbers, places = np.nonzero(rows >= 0)
        pairs = numbers.astype(np.int64), rows[numbers, places].astype(np.int64)
        return SearchCandidates.score(self._similarity, queries, self._vectors, pairs).keep_best(
            top_k
        )


def check_approximate(similarity: Similarity) -> None:
    """Check that the similarity is supported and faiss is installed, before any computation."""
    if similarity == "manhattan":
        raise SettingsError("an approximate index doesn't support manhattan; use an exact index")
    load_faiss()


def load_faiss() -> ModuleType:
    """Import and return the faiss package."""
    try:
        import faiss
    except ImportError:
        raise MissingExtraError(
            f"an approximate index needs faiss: {describe_install('search')}, or use an exact index"
        ) from None
    module: ModuleType = faiss
    return module


def _make_index(
    faiss: ModuleType, num_features: int, num_cells: int, similarity: Similarity
) -> Any:
    """Create an empty IVF index."""
    is_distance = similarity == "euclidean"
    quantizer = (faiss.IndexFlatL2 if is_distance else faiss.IndexFlatIP)(num_features)
    index = faiss.IndexIVFScalarQuantizer(
        quantizer,
        num_features,
        num_cells,
        faiss.ScalarQuantizer.QT_8bit,
        faiss.METRIC_L2 if is_distance else faiss.METRIC_INNER_PRODUCT,
        False,  # quantize the vectors themselves, not their residuals to the centroids
    )
    index.cp.niter, index.cp.min_points_per_centroid = TRAINING_ROUNDS, 1
    return index


def _take_apart(faiss: ModuleType, index: Any) -> Cells:
    lists, num_features = index.invlists, index.d
    sizes = [lists.list_size(number) for number in range(index.nlist)]
    rows, codes = np.empty(index.ntotal, np.int64), np.empty((index.ntotal, num_features), np.uint8)
    start = 0
    for number, size in enumerate(sizes):
        if size:
            part = slice(start, start + size)
            rows[part] = faiss.rev_swig_ptr(lists.get_ids(number), size)
            content = faiss.rev_swig_ptr(lists.get_codes(number), size * num_features)
            codes[part] = content.reshape(size, num_features)
            start += size
    return Cells(
        centers=index.quantizer.reconstruct_n(0, index.nlist),
        ranges=faiss.vector_to_array(index.sq.trained).reshape(2, num_features),
        sizes=np.array(sizes, np.int64),
        rows=rows,
        codes=codes,
        num_probes=1,
        recall=0.0,
    )


def _list_pairs(found: SearchCandidates) -> set[tuple[int, int]]:
    return set(zip(found.queries.tolist(), found.rows.tolist(), strict=True))


def _sample(vectors: NDArray[np.float32], num_samples: int) -> NDArray[np.float32]:
    """Return a random sample of rows with a fixed seed."""
    random = np.random.default_rng(SEED)
    chosen = random.choice(len(vectors), min(num_samples, len(vectors)), replace=False)
    sample: NDArray[np.float32] = vectors[np.sort(chosen)]
    return sample


def _prepare(vectors: NDArray[np.float32], similarity: Similarity) -> NDArray[np.float32]:
    """Normalize vectors to length 1 for cosine similarity; leave them as they are otherwise."""
    if similarity != "cosine":
        return vectors
    norms = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    units: NDArray[np.float32] = (vectors / np.maximum(norms, LEAST_NORM)).astype(np.float32)
    return units
