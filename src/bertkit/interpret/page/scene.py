"""The input of a page of views."""

from dataclasses import dataclass

from bertkit.interpret.contexts import WordInContexts
from bertkit.interpret.encoder_decoder import InspectedEncoderDecoder
from bertkit.interpret.head_names import HeadName
from bertkit.interpret.inspected_model import InspectedModel, Observation


@dataclass(frozen=True, eq=False)
class Scene:
    """A model, its observation of one passage, and the heads that were switched off.

    Attributes:
        subject: the model.
        observation: the observation of the passage; for an encoder-decoder, of one of its three
            attentions.
        without: the heads that were switched off in that pass.
        contexts: a word in several texts, for the geometry view.
        ablates_heads: whether the importance view ablates each head in turn, which takes one pass
            per head.
    """

    subject: InspectedModel | InspectedEncoderDecoder
    observation: Observation
    without: tuple[HeadName, ...] = ()
    contexts: WordInContexts | None = None
    ablates_heads: bool = True

    @property
    def is_across(self) -> bool:
        """Whether this is cross-attention."""
        return self.observation.others is not None
