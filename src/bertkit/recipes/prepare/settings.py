"""Settings of `bertkit prepare`."""

from typing import Annotated, Literal

from pydantic import Field

from bertkit.data.readers.settings import ReaderSettings


class PrepareSettings(ReaderSettings):
    """Settings of `bertkit prepare`; all of them determine the content of the shards."""

    language: str = Field(
        "en",
        pattern=r"^[a-z]{2,3}$",
        description="Language of the text, for splitting it into sentences.",
    )
    sentences: Literal["split", "lines"] = Field(
        "split", description="Split each line into sentences, or treat it as one."
    )
    held_out: Annotated[float, Field(ge=0.0, lt=1.0)] = Field(
        0.02,
        description="Share of the documents to hold out for evaluation; if none is drawn, the end"
        " of the text.",
    )
    seed: Annotated[int, Field(ge=0, lt=2**31)] = Field(
        0, description="Seed that determines which documents are held out."
    )
