"""Dynamic masking for the masked language model, done when a batch is made.

Of the maskable tokens of a sequence, `max(1, round(rate × maskable))` are chosen; of those 80 %
become [MASK], 10 % a random word, and 10 % stay. Special tokens are never chosen.

Source: Devlin et al. 2018, section 3.1 and appendix A.1; whole words: google-research/bert, 2019.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertkit.base.errors import SettingsError
from bertkit.tasks.objectives.settings import MaskingSettings


@dataclass(frozen=True)
class Masked:
    """Masked sequences, end to end."""

    input_ids: NDArray[np.int64]  # int64 `[tokens]`, the model's input
    positions: NDArray[np.int64]  # int64 `[masked]`, to predict, ascending
    labels: NDArray[np.int64]  # int64 `[masked]`, the original tokens there


class Masker:
    """Chooses the tokens to predict and replaces them; special ids are never chosen nor drawn."""

    def __init__(
        self,
        settings: MaskingSettings,
        *,
        mask_id: int,
        special_ids: frozenset[int],
        is_continuation: NDArray[np.bool_],
    ) -> None:
        if settings.mask_token_share + settings.random_token_share > 1.0 + 1e-9:
            raise SettingsError("mask_token_share and random_token_share add up to more than 1")
        self.settings = settings
        self._mask_id = mask_id
        self._is_continuation = is_continuation
        self._is_special = np.zeros(len(is_continuation), dtype=np.bool_)
        self._is_special[list(special_ids)] = True
        self._cumulative = np.cumsum(~self._is_special, dtype=np.float64)

    def mask(
        self,
        input_ids: NDArray[np.int64],
        lengths: NDArray[np.int64],
        generators: list[np.random.Generator],
    ) -> Masked:
        """Mask sequences end to end, each by its own generator, so that others don't affect it."""
        draws = np.concatenate(
            [gen.random((3, length)) for gen, length in zip(generators, lengths, strict=True)],
            axis=1,
        )
        is_maskable = ~self._is_special[input_ids]
        choose = self._choose_words if self.settings.whole_words else self._choose_tokens
        positions = np.flatnonzero(choose(input_ids, lengths, is_maskable, draws[0]))
        labels = input_ids[positions]
        corrupted = input_ids.copy()
        corrupted[positions] = self._replace(labels, draws[1, positions], draws[2, positions])
        return Masked(corrupted, positions, labels)

    def _choose_tokens(
        self,
        input_ids: NDArray[np.int64],
        lengths: NDArray[np.int64],
        is_maskable: NDArray[np.bool_],
        scores: NDArray[np.float64],
    ) -> NDArray[np.bool_]:
        """Choose the tokens with the lowest scores in each sequence."""
        sequence = np.repeat(np.arange(len(lengths)), lengths)
        order = np.lexsort((np.where(is_maskable, scores, np.inf), sequence))
        starts = np.cumsum(lengths) - lengths
        ranks = np.empty(len(input_ids), dtype=np.int64)
        ranks[order] = np.arange(len(input_ids)) - starts[sequence]
        num_maskable = np.bincount(sequence, weights=is_maskable, minlength=len(lengths))
        return is_maskable & (ranks < self._num_chosen(num_maskable)[sequence])

    def _choose_words(
        self,
        input_ids: NDArray[np.int64],
        lengths: NDArray[np.int64],
        is_maskable: NDArray[np.bool_],
        scores: NDArray[np.float64],
    ) -> NDArray[np.bool_]:
        """Choose whole words in random order in each sequence, skipping those that don't fit."""
        is_chosen = np.zeros(len(input_ids), dtype=np.bool_)
        begins_word = is_maskable & ~self._is_continuation[input_ids]
        # After a special token, and after a cut, a word begins with whatever is there.
        begins_word |= is_maskable & ~np.concatenate(([False], is_maskable[:-1]))
        start = 0
        for length in lengths.tolist():
            stop = start + length
            maskable = np.flatnonzero(is_maskable[start:stop]) + start
            words = np.split(maskable, np.flatnonzero(begins_word[maskable])[1:])
            left = int(self._num_chosen(np.array([len(maskable)]))[0])
            words = [word for word in words if len(word)]
            by_score = sorted(words, key=lambda word: scores[word[0]])
            if left and by_score and left < min(map(len, by_score)):
                is_chosen[by_score[0]] = True  # no word fits, but one must be chosen
                left = 0
            for word in by_score:
                if len(word) <= left:
                    is_chosen[word] = True
                    left -= len(word)
            start = stop
        return is_chosen

    def _num_chosen(self, num_maskable: NDArray[np.number]) -> NDArray[np.int64]:
        """Return how many tokens of each sequence to predict: at least one if any is maskable."""
        rounded = np.maximum(np.rint(self.settings.mask_rate * num_maskable), 1.0)
        chosen: NDArray[np.int64] = np.minimum(rounded, num_maskable).astype(np.int64)
        return chosen

    def _replace(
        self,
        labels: NDArray[np.int64],
        actions: NDArray[np.float64],
        words: NDArray[np.float64],
    ) -> NDArray[np.int64]:
        """Return the tokens that replace the chosen ones."""
        share_masked = self.settings.mask_token_share
        share_changed = share_masked + self.settings.random_token_share
        drawn = np.searchsorted(self._cumulative, words * self._cumulative[-1], side="right")
        replaced = np.where(actions < share_changed, drawn, labels)
        replaced[actions < share_masked] = self._mask_id
        return replaced
