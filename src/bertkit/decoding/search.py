"""The entry points of decoding: `decode` for whole sequences, `stream` for one token at a time."""

from collections.abc import Iterator, Sequence

import torch

from bertkit.base.errors import SettingsError
from bertkit.decoding.beam import search_beams
from bertkit.decoding.hypothesis import Hypothesis
from bertkit.decoding.limits import DecodingLimits, DecodingSource
from bertkit.decoding.sampling_search import SamplingSearch
from bertkit.decoding.sequences import Sequences
from bertkit.decoding.settings import DecodingSettings


@torch.inference_mode()
def decode(
    sequences: Sequences,
    settings: DecodingSettings,
    limits: DecodingLimits,
    sources: Sequence[DecodingSource] | None = None,
) -> list[list[Hypothesis]]:
    """Continue each sequence until the model ends it or it reaches its maximum length.

    Args:
        sequences: the model's state, one row for each source.
        settings: greedy decoding, beam search or sampling.
        limits: limits of the model.
        sources: prefix and number of each source; by default no prefix, numbered from 0.

    Returns:
        `num_answers` hypotheses of each source, best first. A beam search may find fewer.
    """
    scores = sequences.scores()
    if sources is None:
        sources = [DecodingSource(number=number) for number in range(len(scores))]
    if settings.beams > 1:
        return search_beams(sequences, scores, settings, limits, sources)
    walk = SamplingSearch(sequences, settings, limits, sources)
    for _ in walk.steps(scores):
        pass
    return walk.answers()


@torch.inference_mode()
def stream(
    sequences: Sequences,
    settings: DecodingSettings,
    limits: DecodingLimits,
    source: DecodingSource | None = None,
) -> Iterator[int]:
    """Continue one sequence, a token at a time; arguments and errors as in `decode`.

    Yields:
        Each token as soon as it is chosen, without the end token.
    """
    if settings.beams > 1 or settings.num_answers > 1:
        raise SettingsError("only one answer without beams can be shown while it is written")
    walk = SamplingSearch(sequences, settings, limits, [source or DecodingSource()])
    for (token,) in walk.steps(sequences.scores()):
        if token != limits.end_id:
            yield token
