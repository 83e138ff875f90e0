"""What a page of views is made from."""

from dataclasses import dataclass

from bertkit.interpret.contexts import WordInContexts
from bertkit.interpret.encoder_decoder import InspectedEncoderDecoder
from bertkit.interpret.head_names import HeadName
from bertkit.interpret.inspected_model import InspectedModel, Observation


@dataclass(frozen=True, eq=False)
class Scene:
    """A model, one passage that it has read, and what was switched off meanwhile.

    Attributes:
        subject: the model.
        observation: of the passage that is shown; of an encoder-decoder, by one of its three
            attentions.
        without: heads that were switched off in that pass.
        contexts: a word in several texts, for the geometry view.
        ablates_heads: whether the importance view switches each head off in turn, which takes a
            pass a head.
    """

    subject: InspectedModel | InspectedEncoderDecoder
    observation: Observation
    without: tuple[HeadName, ...] = ()
    contexts: WordInContexts | None = None
    ablates_heads: bool = True

    @property
    def is_across(self) -> bool:
        """Whether one text looks at another."""
        return self.observation.others is not None
