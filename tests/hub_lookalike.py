"""A small Hub on 127.0.0.1, which can be told to break, to lie and to refuse.

It speaks what huggingface_hub itself asks for, too: `HEAD`, ETags, redirects of large files.
"""

import hashlib
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"
LARGE = (".safetensors", ".bin")


class Request(NamedTuple):
    """What was asked for."""

    method: str
    path: str
    headers: dict[str, str]


def git_sha1(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class HubLookalike:
    """One model, at one commit, under one id.

    Attributes:
        model_id: that of the model; other ids are unknown.
        files: name and content.
        commits: what branches and tags stand for.
        siblings: changes of what is announced, by name; a new name is added to the list.
        sent: what is sent instead of a file.
        drops: after how many bytes each of the next answers with a file breaks off.
        redirects: where a file is said to be.
        etag: of every file, instead of its hash.
        statuses: status and headers with which the next requests are refused; None lets one pass.
        listing: what is answered instead of the list of files.
        token: without this one, nothing is answered.
        has_ranges: whether the end of a file can be asked for.
        stalled: while it isn't None, files are answered when it is set.
        requests: what was asked for.
    """

    def __init__(self, model_id: str, files: dict[str, bytes]) -> None:
        self.model_id = model_id
        self.files = files
        self.commits = {"main": COMMIT, COMMIT: COMMIT}
        self.siblings: dict[str, dict[str, Any]] = {}
        self.sent: dict[str, bytes] = {}
        self.drops: list[int] = []
        self.redirects: dict[str, str] = {}
        self.etag: str | None = None
        self.statuses: list[tuple[int, dict[str, str]] | None] = []
        self.listing: bytes | None = None
        self.token: str | None = None
        self.has_ranges = True
        self.stalled: threading.Event | None = None
        self.requests: list[Request] = []
        self.endpoint = ""

    def asked(self, ending: str) -> list[Request]:
        """The requests for a file."""
        return [request for request in self.requests if request.path.endswith(ending)]

    def list_siblings(self) -> list[dict[str, Any]]:
        listed = []
        for name in [*self.files, *(set(self.siblings) - set(self.files))]:
            content = self.files.get(name, b"")
            sibling: dict[str, Any] = {"rfilename": name, "size": len(content)}
            sibling["blobId"] = git_sha1(content)
            if name.endswith(LARGE):
                sibling["blobId"] = git_sha1(b"pointer to " + content)
                lfs = {"size": len(content), "sha256": sha256(content), "pointerSize": 130}
                sibling["lfs"] = lfs
            listed.append(sibling | self.siblings.get(name, {}))
        return listed


class Handler(BaseHTTPRequestHandler):
    """Answers one request after the other on a connection."""

    protocol_version = "HTTP/1.1"
    hub: HubLookalike

    def log_message(self, *arguments: Any) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        hub, url = self.hub, urlsplit(self.path)
        path = unquote(url.path)
        hub.requests.append(
            Request(self.command, path, {k.lower(): v for k, v in self.headers.items()})
        )
        refusal = hub.statuses.pop(0) if hub.statuses else None
        if refusal:
            self.refuse(*refusal)
        elif path.startswith("/large/"):
            _, _, commit, name = path.split("/", 3)
            self.send_file(name, self.describe(commit, name))
        elif hub.token and self.headers.get("Authorization") != f"Bearer {hub.token}":
            self.refuse(401, {"X-Error-Message": "Invalid username or password."})
        elif path.startswith(f"/api/models/{hub.model_id}/revision/"):
            self.send_listing(path.split("/revision/")[1], "blobs" in parse_qs(url.query))
        elif path.startswith(f"/{hub.model_id}/resolve/"):
            self.resolve(*path.removeprefix(f"/{hub.model_id}/resolve/").split("/", 1))
        else:
            self.refuse(404, {"X-Error-Code": "RepoNotFound"})

    def send_listing(self, revision: str, has_hashes: bool) -> None:
        if revision not in self.hub.commits:
            self.refuse(404, {"X-Error-Code": "RevisionNotFound"})
            return
        listing = {"id": self.hub.model_id, "sha": self.hub.commits[revision]}
        siblings = self.hub.list_siblings()
        if not has_hashes:
            siblings = [{"rfilename": sibling["rfilename"]} for sibling in siblings]
        text = json.dumps({**listing, "siblings": siblings}).encode()
        self.send_bytes(text if self.hub.listing is None else self.hub.listing, {})

    def resolve(self, revision: str, name: str) -> None:
        hub = self.hub
        if name in hub.redirects:
            self.refuse(302, {"Location": hub.redirects[name]})
        elif revision not in hub.commits:
            self.refuse(404, {"X-Error-Code": "RevisionNotFound"})
        elif name not in hub.files:
            self.refuse(404, {"X-Error-Code": "EntryNotFound"})
        elif name.endswith(LARGE):
            headers = self.describe(hub.commits[revision], name)
            location = f"/large/{hub.commits[revision]}/{name}"
            self.refuse(302, {**headers, "Location": location})
        else:
            self.send_file(name, self.describe(hub.commits[revision], name))

    def describe(self, commit: str, name: str) -> dict[str, str]:
        content = self.hub.files[name]
        if not name.endswith(LARGE):
            return {"ETag": f'"{self.hub.etag or git_sha1(content)}"', "X-Repo-Commit": commit}
        return {
            "X-Repo-Commit": commit,
            "X-Linked-ETag": f'"{self.hub.etag or sha256(content)}"',
            "X-Linked-Size": str(len(content)),
        }

    def send_file(self, name: str, headers: dict[str, str]) -> None:
        if self.hub.stalled:
            self.hub.stalled.wait()
        content = self.hub.sent.get(name, self.hub.files[name])
        asked = self.headers.get("Range")
        if asked and self.hub.has_ranges:
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
            self.send_bytes(content[start:], headers, status=206)
        else:
            self.send_bytes(content, headers)

    def send_bytes(self, content: bytes, headers: dict[str, str], status: int = 200) -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "HEAD":
            return
        if self.hub.drops and status < 300 and not self.path.startswith("/api/"):
            content = content[: self.hub.drops.pop(0)]
            self.close_connection = True
        self.wfile.write(content)

    def refuse(self, status: int, headers: dict[str, str]) -> None:
        self.send_bytes(b"", headers, status)


class Server(ThreadingHTTPServer):
    """Says nothing when a client leaves in the middle of an answer."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def serve(hub: HubLookalike) -> Iterator[HubLookalike]:
    """Let it answer, on a port of its own, until the block ends."""
    handler = type("HubHandler", (Handler,), {"hub": hub})
    with Server(("127.0.0.1", 0), handler) as server:
        hub.endpoint = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield hub
        finally:
            if hub.stalled:
                hub.stalled.set()
            server.shutdown()
            thread.join()
