"""The log of a server as lines of JSON, one a request and one for whatever else it says."""

import json
import logging
from typing import TextIO

REQUESTS = logging.getLogger("bertkit.serving")
LOGGERS = REQUESTS, logging.getLogger("bertkit.serving.sharing")


def log_requests(stream: TextIO | None = None) -> None:
    """Write a line for each request, and all other lines in that form; to standard error."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter())
    for logger in LOGGERS:
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        logger.propagate = False


class JsonFormatter(logging.Formatter):
    """Writes a record as an object in one line."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line; a record's `request` has further fields."""
        line = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, "request", {}),
        }
        if record.exc_info:
            line["cause"] = self.formatException(record.exc_info)
        return json.dumps(line)
