"""Whatever the vectors are, what is found is what float64 over all rows would find."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from bertkit.inference.embeddings.settings import SIMILARITIES
from bertkit.inference.embeddings.similarity import compare
from bertkit.retrieval.vector_index import VectorIndex

# Few values give equal scores, small steps scores that float32 can't tell apart.
NUMBERS = st.one_of(
    st.sampled_from([-1.0, 0.0, 1.0, 1.0 + 2**-22]), st.floats(-9, 9, width=32, allow_nan=False)
)


@st.composite
def searches(draw):
    num_features = draw(st.integers(1, 6))
    num_rows, num_queries = draw(st.integers(1, 30)), draw(st.integers(1, 4))
    return (
        draw(arrays.arrays(np.float32, (num_rows, num_features), elements=NUMBERS)),
        draw(arrays.arrays(np.float32, (num_queries, num_features), elements=NUMBERS)),
        draw(st.integers(1, 40)),
        draw(st.sampled_from(SIMILARITIES)),
    )


@given(searches())
def test_the_best_rows_are_found_in_order(search):
    vectors, queries, top_k, similarity = search
    scores, rows = VectorIndex(vectors, similarity).search(queries, top_k)
    for number, query in enumerate(queries):
        exact = compare(similarity, vectors, query)
        best = np.lexsort((np.arange(len(exact)), -exact))[:top_k]
        assert rows[number].tolist() == best.tolist()
        np.testing.assert_array_equal(scores[number], exact[best].astype(np.float32))
