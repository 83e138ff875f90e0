"""What a notebook shows of texts that a model writes."""

from bertkit.decoders.generation.generator import Continuation, ContinuedText
from bertkit.decoders.generation.seq2seq_generator import GeneratedText
from bertkit.reports.notebook import ResultList


def test_answers_show_the_others():
    written = GeneratedText("a", -1.0, True, False, (GeneratedText("b", -2.0, True, False),))
    assert written._repr_html_().count("<tr>") == 3
    begun = ContinuedText("the", [Continuation(" cat", 1, -1.0, -0.5, False)])
    assert "<td>the</td><td>cat</td>" in ResultList([begun])._repr_html_()
