"""Settings of the demo, and the fixed settings that it passes to the other recipes."""

from typing import Annotated

from pydantic import Field

from bertkit.base.settings import Settings
from bertkit.recipes.pretrain.settings import PretrainSettings
from bertkit.recipes.settings import PrepareSettings
from bertkit.recipes.train_tokenizer import TrainTokenizerSettings

TOKENIZER_SETTINGS = TrainTokenizerSettings(vocab_size=8192)
# A tenth of the packages. The largest ones aren't among them, so it is only 3.5 % of the text.
HELD_OUT = 0.1
PREPARE_SETTINGS = PrepareSettings(held_out=0.0)  # besides the file of the packages held out


class DemoSettings(Settings):
    """Settings of `bertkit demo`."""

    minutes: Annotated[float, Field(gt=0.0, le=10_000.0)] = Field(
        4.5,
        description="Minutes of pre-training."
        " Vocabulary, shards and report take one to two minutes more, and `make demo` installs"
        " packages first.",
    )
    device: str = Field("auto", description="auto, cpu, cuda or cuda:N.")

    def pretrain_settings(self) -> PretrainSettings:
        """Return the pre-training settings of the demo's small BERT."""
        return PretrainSettings(
            size="tiny",
            objective="bert",
            minutes=self.minutes,
            max_length=64,
            eval_examples=512,
            device=self.device,
        )
