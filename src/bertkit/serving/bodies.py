"""The body of a request: its content type, and its JSON."""

import re
from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from bertkit.base.settings import describe_validation
from bertkit.serving.errors import Reason

AnyKind = TypeVar("AnyKind", bound=BaseModel)

# Half a character that JSON may name by its number, though no text in UTF-8 has it.
HIGH, LOW = rb"\\u[dD][89aAbB][0-9a-fA-F]{2}", rb"\\u[dD][c-fC-F][0-9a-fA-F]{2}"
HALVES = re.compile(rb"(?P<whole>(?:\\\\|%b%b)++)|(?:%b(?!%b)|%b)++" % (HIGH, LOW, HIGH, LOW, LOW))
MAX_ESCAPES = 60_000  # of a body that is mended, which nobody else is answered meanwhile
NUM_BYTES = len(rb"\ud83d")


def check_content(headers: Mapping[str, str]) -> None:
    """Raise `ServingError` if the headers of a body don't say that it is JSON in UTF-8."""
    kind, *parameters = headers.get("content-type", "").lower().split(";")
    is_json = kind.strip() == "application/json" or kind.strip().endswith("+json")
    named = (name.strip().partition("=") for name in parameters)
    charset = next((value for name, _, value in named if name.strip() == "charset"), "")
    if not is_json or charset.strip("\"' \t") not in {"", "utf-8", "utf8"}:
        raise Reason.NOT_JSON.error(
            "the body must be JSON in UTF-8, with Content-Type: application/json"
        )
    if headers.get("content-encoding", "identity").strip().lower() not in {"identity", ""}:
        raise Reason.NOT_JSON.error("the body is compressed; send it as it is")


def parse_body(kind: type[AnyKind], content: bytes) -> AnyKind:
    """Return a body of a kind; half a character becomes U+FFFD, as in files."""
    try:
        try:
            return kind.model_validate_json(content, strict=True)
        except ValidationError as error:
            is_json = error.errors()[0]["type"] != "json_invalid"
            if is_json or content.count(b"\\") > MAX_ESCAPES:
                raise
            return kind.model_validate_json(HALVES.sub(replace_halves, content), strict=True)
    except ValidationError as error:
        problems = describe_validation(error, kind, shows_input=False)
        raise Reason.UNREADABLE.error(problems) from None


def replace_halves(found: re.Match[bytes]) -> bytes:
    """Return characters as they are, and U+FFFD for each half of one."""
    return found["whole"] or rb"\ufffd" * (len(found[0]) // NUM_BYTES)
