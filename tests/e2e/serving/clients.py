"""Clients of others, with the key of the server."""

import httpx
from huggingface_hub import InferenceClient

KEY = "a-key-of-the-tests"


def ask_hub(server, name):
    return InferenceClient(base_url=f"{server}/v1/models/{name}", api_key=KEY)


def ask_as_node(server, path, body):
    """The answer to what @huggingface/inference sends to `path`, without fields of its own."""
    answer = httpx.post(f"{server}{path}", json=body, headers={"authorization": f"Bearer {KEY}"})
    assert answer.status_code == 200, answer.text
    return answer.json()
