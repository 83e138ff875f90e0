"""HTTP requests to the Hub: a bounded response, or a file from a given byte on.

Session, token, endpoint and timeouts are those of huggingface_hub, so that its variables
(`HF_ENDPOINT`, `HF_TOKEN`, `HF_HUB_DOWNLOAD_TIMEOUT` …) have their usual meaning. Every HTTP error
becomes a one-line message that says what to do; no response is read without a limit.
"""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from urllib.parse import quote

from bertkit._version import __version__
from bertkit.base.errors import HubError

MAX_MESSAGE_CHARS = 200
LOG_IN = "run `hf auth login` or set HF_TOKEN"


class UnreachableError(HubError):
    """No response, or an incomplete one; retrying may help."""


def load_constants() -> ModuleType:
    """Return huggingface_hub's constants, which it reads from the environment on first import.

    The import is slow, so it is delayed until a Hub id is actually used.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns about unrelated variables
        from huggingface_hub import constants
    return constants


def file_url(model_id: str, commit: str, name: str) -> str:
    """Return the URL of a model's file."""
    return f"{load_constants().ENDPOINT}/{model_id}/resolve/{commit}/{quote(name)}"


def listing_url(model_id: str, revision: str) -> str:
    """Return the URL of a model's file list with sizes and hashes."""
    endpoint = load_constants().ENDPOINT
    return f"{endpoint}/api/models/{model_id}/revision/{quote(revision, safe='')}?blobs=true"


@contextmanager
def open_stream(
    url: str, model_id: str, *, start_byte: int = 0
) -> Iterator[tuple[int, Iterator[bytes]]]:
    """Yield the index of the first byte that is sent, and an iterator over the chunks.

    Args:
        url: on the Hub; the token is sent with it, but not to another host it redirects to.
        model_id: for messages.
        start_byte: the requested start; a server may ignore it and begin at 0.
    """
    constants = load_constants()
    from huggingface_hub import get_session

    headers = {**_identity(), "accept-encoding": "identity"}
    if start_byte:
        headers["range"] = f"bytes={start_byte}-"
    timeout_seconds = constants.HF_HUB_DOWNLOAD_TIMEOUT
    try:
        with get_session().stream(
            "GET", url, headers=headers, timeout=timeout_seconds, follow_redirects=True
        ) as response:
            if response.status_code >= 400:
                raise _refusal(model_id, response.status_code, response.headers)
            is_rest = response.status_code == 206
            yield start_byte if is_rest else 0, response.iter_raw()
    except _client_errors() as error:
        raise UnreachableError(
            f"{constants.ENDPOINT} can't be reached ({type(error).__name__}: {_one_line(error)});"
            f" check the network, or raise HF_HUB_DOWNLOAD_TIMEOUT ({timeout_seconds} s); what is"
            f" in the cache, {constants.HF_HUB_CACHE}, is used with HF_HUB_OFFLINE=1"
        ) from None


def read_answer(url: str, model_id: str, *, limit_bytes: int) -> bytes:
    """Read a complete response; errors as in `open_stream`, HubError if it exceeds the limit."""
    answer = bytearray()
    with open_stream(url, model_id) as (_, pieces):
        for piece in pieces:
            answer += piece
            if len(answer) > limit_bytes:
                raise HubError(
                    f"{url} answers with more than {limit_bytes:,} bytes, and no such answer needs"
                    " as many; is HF_ENDPOINT a Hub?"
                )
    return bytes(answer)


def _client_errors() -> tuple[type[Exception], ...]:
    """Return the errors of huggingface_hub's HTTP client: httpx up to its 1.x, then httpx2."""
    from huggingface_hub import errors

    library = import_module(errors.HTTPError.__module__)  # type: ignore[attr-defined]
    return library.HTTPError, library.InvalidURL


def _identity() -> dict[str, str]:
    """Return the user agent, and the token if there is one that may be sent implicitly."""
    from huggingface_hub import get_token

    headers = {"user-agent": f"bertkit/{__version__}"}
    token = None if load_constants().HF_HUB_DISABLE_IMPLICIT_TOKEN else get_token()
    if token:
        headers["authorization"] = f"Bearer {token}"
    return headers


def _refusal(model_id: str, status: int, headers: Mapping[str, str]) -> HubError:
    """Return the error for a failed request, chosen by the Hub's error code or the status."""
    code = headers.get("x-error-code", "")
    said = _one_line(headers.get("x-error-message", "") or f"status {status}")
    if status >= 500 or status in (408, 429):
        return UnreachableError(f"the Hub can't give {model_id} now ({said}); try again later")
    if said.startswith("Invalid credentials"):
        return HubError(f"the Hub doesn't know the token that is set here; {LOG_IN}, or remove it")
    if code == "GatedRepo":
        return HubError(f"{model_id} is gated: accept its terms on its page, then {LOG_IN}")
    if code == "RevisionNotFound":
        return HubError(f"{model_id} has no such revision; name a branch, a tag or a whole commit")
    if code == "RepoNotFound" or (status in (401, 404) and code != "EntryNotFound"):
        return HubError(
            f"{model_id} is no folder here and no public model on the Hub; correct the name, or"
            f" for a private model {LOG_IN}"
        )
    return HubError(f"the Hub refuses {model_id} ({said}); look at its page, or {LOG_IN}")


def _one_line(message: object) -> str:
    """Return a server's message on one line, shortened and without control characters."""
    text = " ".join(str(message).split())
    return "".join(filter(str.isprintable, text))[:MAX_MESSAGE_CHARS]
