"""Settings of `bertkit serve`; neither torch nor a web library is loaded for them."""

import re
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from pydantic import Field, field_validator

from bertkit.base.settings import Count, Settings, in_panel, redefine
from bertkit.inference.embeddings.settings import EmbedderSettings
from bertkit.inference.settings import EngineSettings

ORIGIN = re.compile(r"\*|https?://[^/\s]+")


@in_panel("Limits", 2)
class LimitSettings(Settings):
    """What a server takes, and what it refuses."""

    max_batch_tokens: Annotated[int, Field(ge=16)] | None = Field(
        default=None,
        description="Maximum tokens that a model computes at once, which bounds its memory; by"
        " default what its engine is fastest with.",
    )
    max_concurrent_requests: int = Field(
        default=512,
        ge=1,
        description="Maximum requests of a model that wait or are computed; further ones are"
        " answered with 429 and a Retry-After.",
    )
    max_requests_per_client: Count | None = Field(
        default=None,
        description="Maximum requests of one client, by its key or else its address, that wait or"
        " are computed; by default as many as of all.",
    )
    max_connections: int = Field(
        default=1000,
        ge=1,
        description="Maximum open connections; further ones are answered with 503 and closed.",
    )
    max_wait: float = Field(
        default=4.0,
        gt=0,
        description="Maximum seconds that a request waits for those before it, estimated from the"
        " model's speed so far; if they take longer, it is answered with 429.",
    )
    timeout: float = Field(
        default=30.0,
        gt=0,
        description="Maximum seconds of a request, sending it included; then it is answered with"
        " 504, or with 408 if it didn't arrive whole.",
    )
    max_client_batch_size: int = Field(
        default=1024, ge=1, description="Maximum texts of a request; more are answered with 422."
    )
    payload_limit: int = Field(
        default=8_000_000,
        ge=1000,
        description="Maximum bytes of a request; more are answered with 413.",
    )
    auto_truncate: Annotated[bool, Parameter(negative="--no-auto-truncate")] = Field(
        default=True,
        description="Truncate texts that are longer than the model takes, unless a request says"
        " truncate: false; otherwise answer them with 422, unless it says truncate: true.",
    )


class ServeSettings(EngineSettings, LimitSettings):
    """How models are loaded and served."""

    host: str = Field(
        default="127.0.0.1",
        min_length=1,
        description="Address to listen on; 0.0.0.0 lets other machines connect.",
    )
    port: int = Field(
        default=8080, ge=0, le=65535, description="Port to listen on; 0 takes a free one."
    )
    workers: int = Field(
        default=1,
        ge=1,
        description="Number of processes that share the port; each has the models in its own"
        " memory, a share of the cores, and these limits for itself.",
    )
    key_file: Annotated[Path | None, Parameter(name="keys")] = Field(
        default=None,
        description="File of API keys, one a line, of which each request must send one"
        " (Authorization: Bearer KEY); by default those in the environment variable BERTKIT_KEYS.",
    )
    ssl_certfile: Path | None = Field(
        default=None,
        description="PEM file with a certificate, its chain and its private key; then the server"
        " speaks TLS.",
    )
    cors_allow_origin: Annotated[tuple[str, ...], Parameter(negative="")] = Field(
        default=(),
        description="Origins whose pages may use the server from a browser, such as"
        " https://example.org; * allows all. By default none.",
    )
    log_requests: Annotated[bool, Parameter(negative="")] = Field(
        default=False,
        description="Write a line of JSON to standard error for each request: its id, route, model,"
        " status, time, tokens and client; never its texts or key.",
    )
    deterministic: Annotated[bool, Parameter(negative="")] = redefine(
        EmbedderSettings, "deterministic"
    )

    @field_validator("cors_allow_origin")
    @classmethod
    def _check_origins(cls, origins: tuple[str, ...]) -> tuple[str, ...]:
        for origin in origins:
            if not ORIGIN.fullmatch(origin):
                raise ValueError(f"{origin!r:.80} is no origin such as https://example.org, or *")
        return origins
