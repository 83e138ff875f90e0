"""Passages of any text leave nothing out, fit into a model, and overlap as they may."""

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from bertkit.retrieval.passages import cut_passages

PIECES = [
    "a",
    "Ä b",
    "word ",
    "One two three. ",
    "。",
    "你好",
    " ",
    "\n",
    "\r\n",
    "\n\n",
    "# h\n",
    "\0",
]
TEXTS = st.lists(st.sampled_from(PIECES) | st.text(max_size=9), max_size=60).map("".join)


def measure(text):
    """Count more tokens for a text than for its parts, as tokenizers may."""
    return len(text.split()) + len(text) // 4


@given(TEXTS, st.integers(1, 12), st.sampled_from([0.0, 0.125, 0.5]), st.booleans())
@settings(max_examples=100, deadline=None)
def test_passages_cover_a_text(text, size, overlap, stays_whole):
    found = cut_passages(text, measure, size, overlap, stays_whole=stays_whole)
    assert found == cut_passages(text, measure, size, overlap, stays_whole=stays_whole)
    assert bool(found) == bool(text.replace("\0", "").strip())
    joined = ""
    for number, passage in enumerate(found):
        seen = passage.text.strip()
        assert seen
        assert measure(seen) <= size or len(seen) == 1
        assert text.startswith(passage.text, passage.start)
        assert passage.start <= len(joined) < passage.start + len(passage.text)
        repeated = joined[passage.start :].strip()
        assert len(repeated.split()) <= size * overlap or not number
        before = text[: passage.start + len(passage.text) - len(passage.text.lstrip())]
        assert passage.line == 1 + len(re.findall(r"\r\n?|\n", before))
        joined += passage.text[len(joined) - passage.start :]
    assert joined == (text if found else "")
