"""What is written ends at the first stop sequence, in whichever parts it comes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertkit.decoders.decoding.option_names import translate_names
from bertkit.decoders.generation.stopped_text import StoppedText

LETTERS = st.text("ab ", max_size=12)


@given(st.lists(LETTERS, max_size=6), st.lists(st.text("ab ", min_size=1, max_size=4), max_size=3))
@pytest.mark.parametrize("keeps_stop", [False, True])
def test_parts_end_where_the_whole_text_does(keeps_stop, parts, stops):
    text = "".join(parts)
    ends = [(text.index(stop) + len(stop), text.index(stop)) for stop in stops if stop in text]
    expected = text
    if ends:
        end, start = min(ends)
        expected = text[: end if keeps_stop else start]
    kept, given_parts = StoppedText(stops, keeps_stop), []
    for part in (*parts, None):
        given_parts.append(kept.add(part))
        if kept.is_stopped:
            break
    found = "".join(given_parts)
    assert found == kept.text == expected
    whole = StoppedText(stops, keeps_stop)
    whole.add(text)
    assert whole.text == expected
    assert kept.is_stopped == bool(ends)


def test_a_text_that_may_begin_a_stop_sequence_is_held_back():
    kept = StoppedText(["cat sat"])
    assert [kept.add(part) for part in ("a ", "cat", " s", "at", None)] == ["a ", "", "", "", ""]
    assert (kept.text, kept.is_stopped) == ("a ", True)
    kept = StoppedText(["cat sat"])
    assert [kept.add(part) for part in ("a cat", " is", None)] == ["a ", "cat is", ""]
    kept = StoppedText(["new line of"])
    assert [kept.add(part) for part in ("new", " line", " of")] == ["", "", ""]


def test_options_have_our_names_and_what_changes_nothing_is_left_out():
    given_options = {"max_new_tokens": 3, "temperature": 0.5, "best_of": 1, "top_p": None}
    assert translate_names(given_options) == {"max_tokens": 3, "temperature": 0.5}
    assert translate_names({"seed": 3, "do_sample": False}) == {}
    assert translate_names({"seed": 3, "do_sample": True}) == {"temperature": 1.0, "seed": 3}
    assert translate_names({"repetition_penalty": 1.0}) == {}
    assert translate_names({"repetition_penalty": 1.2}) == {"repetition_penalty": 1.2}
