"""LitServe around sentence-transformers: a module that its processes can import."""

from pathlib import Path
from typing import Any

import litserve

from serve_side import load_sentence_transformers

BATCH_SECONDS = 0.01  # that requests are gathered for
MOST_TOGETHER = 64


class LitEmbeddings(litserve.LitAPI):  # type: ignore[misc]  # it has no types
    """Texts to vectors."""

    folder: Path
    precision: str

    def setup(self, device: str) -> None:
        self.encode = load_sentence_transformers(self.folder, self.precision)

    def decode_request(self, request: dict[str, Any]) -> str:
        (text,) = request["inputs"]
        return str(text)

    def predict(self, x: list[str]) -> Any:
        return self.encode(x)

    def encode_response(self, output: Any) -> dict[str, Any]:
        return {"embedding": output.tolist()}


def build_server(folder: Path, precision: str) -> Any:
    api = LitEmbeddings(
        max_batch_size=MOST_TOGETHER, batch_timeout=BATCH_SECONDS, api_path="/embed"
    )
    api.folder, api.precision = folder, precision
    return litserve.LitServer(api, accelerator="cpu", timeout=False)
