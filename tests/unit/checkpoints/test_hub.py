"""What comes from the Hub is what it announced, all of one commit, or nothing."""

import errno
import json
import os
import re
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from filelock import FileLock, Timeout
from huggingface_hub import close_session, constants, hf_hub_download, snapshot_download
from huggingface_hub.errors import HFValidationError
from huggingface_hub.utils import validate_repo_id
from tests.hub_lookalike import COMMIT, HubLookalike, git_sha1, serve, sha256
from tests.waiting import TIMEOUT_SECONDS

from bertkit.base import storage
from bertkit.base.errors import (
    HubError,
    MissingFileError,
    SettingsError,
    StorageError,
    UnsafeFileError,
)
from bertkit.base.members import find_member
from bertkit.checkpoints import hub_download
from bertkit.checkpoints.hub import is_hub_id, resolve_model, resolve_tokenizer

MODEL = "someone/tiny-bert"
WEIGHTS = bytes(range(256)) * 512
OTHERS = (
    *("README.md", "tf_model.h5", "flax_model.msgpack", "rust_model.ot", "training_args.bin"),
    *("onnx/model.onnx", "openvino/openvino_model.bin", "model.fp16.safetensors", ".gitattributes"),
)


def json_bytes(content: object) -> bytes:
    return json.dumps(content).encode()


FILES = {
    "config.json": json_bytes({"model_type": "bert"}),
    "model.safetensors": WEIGHTS,
    "pytorch_model.bin": WEIGHTS[::-1],
    "vocab.txt": b"[PAD]\n[UNK]\n",
    "tokenizer.json": b"{}",
    "tokenizer_config.json": b"{}\n",
    "special_tokens_map.json": b"{}\n\n",
    "added_tokens.json": b"",
    "task.json": b"{}\n\n\n",
    "bertkit_seq2seq.json": b" {}",
    **dict.fromkeys(OTHERS, b"not wanted"),
}
WANTED = sorted(set(FILES) - {*OTHERS, "pytorch_model.bin"})


@pytest.fixture(scope="module", autouse=True)
def _one_session():
    """To begin one takes a tenth of a second: it reads all certificates."""
    yield
    close_session()


@pytest.fixture
def hub(tmp_path, monkeypatch):
    connect = socket.socket.connect

    def connect_here(self: socket.socket, address: tuple[str, int]) -> None:
        assert address[0] == "127.0.0.1", f"a test may not reach {address}"
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", connect_here)
    for name in [*os.environ]:
        if name.startswith(("HF_", "HUGGING")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setattr(hub_download, "WAIT_SECONDS", 0)
    monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", TIMEOUT_SECONDS)
    monkeypatch.setattr(storage, "sync", lambda descriptor: None)
    monkeypatch.setattr(storage, "sync_folder", lambda path: None)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.chdir(tmp_path)
    with serve(HubLookalike(MODEL, dict(FILES))) as served:
        monkeypatch.setattr(constants, "ENDPOINT", served.endpoint)
        yield served


@pytest.fixture
def folder(tmp_path):
    """That of the model in the cache."""
    return tmp_path / "cache" / "models--someone--tiny-bert"


def list_files(snapshot: Path) -> list[str]:
    return sorted(
        path.relative_to(snapshot).as_posix() for path in snapshot.rglob("*") if path.is_file()
    )


def list_outside(tmp_path: Path) -> list[str]:
    return sorted({path.name for path in tmp_path.iterdir()} - {"cache"})


def test_only_what_is_needed_is_fetched_and_all_of_one_commit(hub, folder, capsys):
    snapshot = resolve_model(MODEL)
    assert snapshot == folder / "snapshots" / COMMIT
    assert list_files(snapshot) == WANTED
    for name in WANTED:
        assert (snapshot / name).read_bytes() == FILES[name]
        assert find_member(snapshot, name).resolve().parent == folder / "blobs"
    assert (folder / "refs" / "main").read_text() == COMMIT
    assert {request.path for request in hub.requests if "/resolve/" in request.path} == {
        f"/{MODEL}/resolve/{COMMIT}/{name}" for name in WANTED
    }
    assert not list(folder.rglob("*.incomplete"))
    assert capsys.readouterr() == ("", "")


def test_what_is_there_is_not_fetched_again(hub, folder):
    resolve_model(MODEL)
    hub.requests.clear()
    assert resolve_model(MODEL, revision=COMMIT) == folder / "snapshots" / COMMIT
    assert [request.path for request in hub.requests] == [f"/api/models/{MODEL}/revision/{COMMIT}"]
    assert [path.name for path in (folder / "refs").iterdir()] == ["main"]


def test_another_commit_shares_what_did_not_change(hub, folder):
    resolve_model(MODEL)
    hub.requests.clear()
    other = COMMIT[::-1]
    hub.commits |= {"main": other, other: other}
    hub.files["config.json"] = b"{ }"
    snapshot = resolve_model(MODEL)
    assert (snapshot / "config.json").read_bytes() == b"{ }"
    assert [request.path for request in hub.requests if "/api/" not in request.path] == [
        f"/{MODEL}/resolve/{other}/config.json"
    ]
    assert (folder / "refs" / "main").read_text() == other
    assert (snapshot / "vocab.txt").samefile(folder / "snapshots" / COMMIT / "vocab.txt")


@pytest.mark.parametrize("name", ["onnx/model.onnx", "onnx/model_quantized.onnx"])
def test_an_export_of_ours_is_fetched_and_found_again_offline(hub, name, monkeypatch):
    wanted = ["config.json", name, f"{name}_data"]
    hub.files = {each: each.encode() for each in wanted}
    hub.files["tokenizer_manifest.json"] = b"{}"
    snapshot = resolve_model(MODEL)
    assert list_files(snapshot) == wanted
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert resolve_model(MODEL) == snapshot


@pytest.mark.parametrize("stem", ["model{}.safetensors", "pytorch_model{}.bin"])
def test_parts_of_weights_come_with_their_index(hub, stem):
    shards = [stem.format(f"-0000{number}-of-00002") for number in (1, 2)]
    index = stem.format("") + ".index.json"
    hub.files = {name: name.encode() for name in ["config.json", index, *shards]}
    others = [f"x{shards[0]}", f"old/{shards[0]}", stem.format("-1-of-2"), f"{shards[0]}.part"]
    hub.files |= dict.fromkeys([*others, "pytorch_model.bin.index.json"], b"not wanted")
    assert list_files(resolve_model(MODEL)) == sorted(["config.json", index, *shards])


def test_modules_come_with_config_and_weights(hub):
    theirs = ["1_Pooling/config.json", "2_Dense/config.json", "2_Dense/model.safetensors"]
    ours = ["modules.json", "sentence_bert_config.json", "config_sentence_transformers.json"]
    hub.files |= {name: name.encode() for name in [*theirs, *ours]}
    hub.files["2_Dense/pytorch_model.bin"] = b"not wanted"
    hub.files |= dict.fromkeys(["onnx/config.json", "1_a/b/config.json"], b"not wanted")
    assert list_files(resolve_model(MODEL)) == sorted([*WANTED, *theirs, *ours])
    del hub.files["modules.json"]
    hub.commits |= {"main": COMMIT[::-1]}
    assert list_files(resolve_model(MODEL)) == sorted([*WANTED, *ours[1:]])


def test_an_adapter_comes_without_a_config(hub):
    wanted = ["adapter_config.json", "adapter_model.safetensors", "tokenizer.json"]
    hub.files = {name: name.encode() for name in wanted}
    hub.files |= dict.fromkeys(["adapter_model.bin", "training_args.bin"], b"not wanted")
    assert list_files(resolve_model(MODEL)) == wanted


@pytest.mark.parametrize(
    "name",
    [
        *("../config.json", "/tmp/config.json", "1_a/../../config.json", "1_a\\..\\config.json"),
        *(
            "C:config.json",
            "../1_a/config.json",
            "1_../config.json",
            "1_" + "x" * 99 + "/config.json",
        ),
    ],
)
def test_names_that_lead_elsewhere_are_never_asked_for(hub, tmp_path, name):
    hub.files["modules.json"] = b"[]"
    hub.siblings[name] = {}
    assert list_files(resolve_model(MODEL)) == sorted([*WANTED, "modules.json"])
    assert list_outside(tmp_path) == []


def test_an_etag_is_never_a_path(hub, tmp_path):
    """An endpoint could otherwise write any file: see the docstring of `checkpoints/hub.py`."""
    hub.etag = str(tmp_path / "outside")
    assert list_files(resolve_model(MODEL)) == WANTED
    assert list_outside(tmp_path) == []


def test_too_many_files_are_refused(hub):
    hub.files |= {f"many/{number}": b"" for number in range(5_000)}
    assert list_files(resolve_model(MODEL)) == WANTED
    hub.files["modules.json"] = b"[]"
    hub.files |= {f"1_{number}/config.json": b"" for number in range(1_000)}
    with pytest.raises(UnsafeFileError, match="would have 1,010 files, and at most 1,000 are"):
        resolve_model(MODEL)


def test_huggingface_hub_finds_what_we_fetched_and_we_what_it_did(hub, folder, monkeypatch):
    snapshot = resolve_model(MODEL)
    assert snapshot_download(MODEL, local_files_only=True) == str(snapshot)
    template = hub.endpoint + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    theirs = Path(hf_hub_download(MODEL, "pytorch_model.bin", endpoint=hub.endpoint))
    assert theirs == snapshot / "pytorch_model.bin"
    assert theirs.resolve() == folder / "blobs" / sha256(FILES["pytorch_model.bin"])
    hub.requests.clear()
    hub.files.pop("model.safetensors")
    assert resolve_model(MODEL) == snapshot
    assert not hub.asked("pytorch_model.bin")


def test_an_interrupted_file_goes_on_where_it_stopped(hub):
    hub.files = {"config.json": b"{}", "model.safetensors": WEIGHTS}
    hub.drops = [2, 50_000, 30_000]
    snapshot = resolve_model(MODEL)
    assert (snapshot / "model.safetensors").read_bytes() == WEIGHTS
    ranges = [request.headers.get("range") for request in hub.asked("model.safetensors")]
    assert ranges == [None, None, *["bytes=50000-"] * 2, *["bytes=80000-"] * 2]


def test_two_that_want_the_same_fetch_it_once(hub):
    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(resolve_model, [MODEL, MODEL])
    assert first == second
    assert list_files(first) == WANTED
    assert [len(hub.asked(f"{COMMIT}/{name}")) for name in ("config.json", "vocab.txt")] == [1, 1]


def test_another_run_goes_on_where_the_last_one_stopped(hub, folder):
    hub.files = {"config.json": b"{}", "model.safetensors": WEIGHTS}
    hub.drops = [2, 1_000, 1_000, 1_000]
    with pytest.raises(HubError, match=r"can't be reached.*check the network"):
        resolve_model(MODEL)
    partial = folder / "blobs" / f"{sha256(WEIGHTS)}.incomplete"
    assert partial.read_bytes() == WEIGHTS[:3_000]
    assert not (folder / "refs").exists()
    hub.requests.clear()
    snapshot = resolve_model(MODEL)
    assert (snapshot / "model.safetensors").read_bytes() == WEIGHTS
    assert {request.headers["range"] for request in hub.asked("model.safetensors")} == {
        "bytes=3000-"
    }


def test_attempts_that_bring_much_do_not_count(hub, monkeypatch):
    monkeypatch.setattr(hub_download, "PROGRESS_BYTES", 10_000)
    hub.files = {"config.json": b"{}", "model.safetensors": WEIGHTS}
    hub.drops = [2, *[10_000] * 10]
    assert (resolve_model(MODEL) / "model.safetensors").read_bytes() == WEIGHTS


def test_a_server_that_begins_again_is_followed(hub):
    hub.has_ranges = False
    hub.files = {"config.json": b"{}", "model.safetensors": WEIGHTS}
    hub.drops = [2, 50_000]
    assert (resolve_model(MODEL) / "model.safetensors").read_bytes() == WEIGHTS


@pytest.mark.parametrize("left", [WEIGHTS, WEIGHTS + b"more", WEIGHTS[:7]])
def test_what_others_left_unfinished_is_used_or_dropped(hub, folder, left):
    partial = folder / "blobs" / f"{sha256(WEIGHTS)}.incomplete"
    partial.parent.mkdir(parents=True)
    partial.write_bytes(left)
    assert (resolve_model(MODEL) / "model.safetensors").read_bytes() == WEIGHTS
    assert bool(hub.asked("model.safetensors")) == (left != WEIGHTS)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors"])
def test_other_bytes_than_announced_are_thrown_away(hub, folder, name):
    content = FILES[name]
    wrong = hub.sent[name] = bytes([content[0] ^ 1]) + content[1:]
    hash_of = sha256 if name.endswith(".safetensors") else git_sha1
    message = (
        f"{name} of {MODEL} isn't .*expected the hash {hash_of(content)}, got {hash_of(wrong)}"
    )
    with pytest.raises(HubError, match=message):
        resolve_model(MODEL)
    assert not list(folder.glob(f"blobs/{hash_of(content)}*"))
    assert name not in list_files(folder / "snapshots")
    del hub.sent[name]
    assert (resolve_model(MODEL) / name).read_bytes() == content


def test_more_than_announced_is_never_written(hub, folder, monkeypatch):
    sizes = []
    write = storage.write
    monkeypatch.setattr(
        storage, "write", lambda file, data: sizes.append(len(data)) or write(file, data)
    )
    hub.files = {"config.json": b"{}", "model.safetensors": WEIGHTS}
    hub.sent["model.safetensors"] = WEIGHTS * 9
    with pytest.raises(HubError, match="longer than the 131,072 bytes that the Hub announced"):
        resolve_model(MODEL)
    assert sum(sizes) <= 2 + len(WEIGHTS)
    assert [path.name for path in (folder / "blobs").iterdir()] == [git_sha1(b"{}")]


def test_less_than_announced_is_told(hub):
    hub.sent["model.safetensors"] = WEIGHTS[:1000]
    with pytest.raises(HubError, match="ended after 1,000 of 131,072 bytes; run the command again"):
        resolve_model(MODEL)


def test_a_file_of_another_size_in_the_cache_is_fetched_again(hub):
    snapshot = resolve_model(MODEL)
    (snapshot / "model.safetensors").resolve().write_bytes(b"cut")
    assert (resolve_model(MODEL) / "model.safetensors").read_bytes() == WEIGHTS


def test_a_blob_that_another_program_altered_is_fetched_again(hub, folder):
    """It has its size, and no snapshot of ours names it yet."""
    blob = folder / "blobs" / sha256(WEIGHTS)
    blob.parent.mkdir(parents=True)
    blob.write_bytes(WEIGHTS[::-1])
    assert (resolve_model(MODEL) / "model.safetensors").read_bytes() == WEIGHTS
    assert hub.asked("model.safetensors")


@pytest.mark.parametrize("commit", ["../../../elsewhere", "", "f" * 40, "\0" * 40])
def test_a_ref_to_what_is_no_snapshot_is_none(hub, folder, tmp_path, monkeypatch, commit):
    snapshot = resolve_model(MODEL)
    snapshot.rename(tmp_path / "elsewhere")
    (folder / "refs" / "main").write_text(commit)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(HubError, match="at main isn't in the cache"):
        resolve_model(MODEL)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    assert list_files(resolve_model(MODEL)) == WANTED
    assert (folder / "refs" / "main").read_text() == COMMIT


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        (
            404,
            "RepoNotFound",
            "no folder here and no public model on the Hub.*hf auth login.*HF_TOKEN",
        ),
        (401, "", "no folder here and no public model on the Hub.*hf auth login.*HF_TOKEN"),
        (401, "GatedRepo", "tiny-bert is gated: accept its terms on its page.*hf auth login"),
        (404, "RevisionNotFound", "has no such revision; name a branch, a tag or a whole commit"),
        (404, "EntryNotFound", r"the Hub refuses someone/tiny-bert \(status 404\)"),
        (403, "", r"the Hub refuses someone/tiny-bert \(status 403\); .*HF_TOKEN"),
        (429, "", r"can't give someone/tiny-bert now \(status 429\); try again later"),
        (503, "", r"can't give someone/tiny-bert now \(status 503\); try again later"),
    ],
)
def test_refusals_say_what_to_do(hub, status, code, message):
    hub.statuses = [(status, {"X-Error-Code": code})]
    with pytest.raises(HubError, match=message) as caught:
        resolve_model(MODEL)
    assert "\n" not in str(caught.value)


def test_a_token_that_is_none_is_told(hub):
    hub.statuses = [(401, {"X-Error-Message": "Invalid credentials in Authorization header"})]
    with pytest.raises(HubError, match=r"doesn't know the token .*hf auth login.*or remove it"):
        resolve_model(MODEL)


def test_a_model_that_has_moved_is_followed(hub, folder):
    path = f"/api/models/{MODEL}/revision/main?blobs=true"
    hub.statuses = [(307, {"Location": path})]
    assert resolve_model(MODEL) == folder / "snapshots" / COMMIT


def test_what_a_server_says_is_one_short_printable_line(hub):
    hub.statuses = [(403, {"X-Error-Message": "no \x1b[31m" + "x" * 10_000})]
    with pytest.raises(HubError) as caught:
        resolve_model(MODEL)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 400


def test_trouble_of_the_server_passes(hub):
    hub.statuses = [None, (503, {}), (429, {})]
    assert list_files(resolve_model(MODEL)) == WANTED
    assert len(hub.asked(f"{COMMIT}/config.json")) == 3


def test_the_token_opens_a_private_model_and_stays_with_the_hub(hub, tmp_path, monkeypatch):
    hub.token = "hf_secret"
    with pytest.raises(HubError, match=r"no public model on the Hub.*HF_TOKEN"):
        resolve_model(MODEL)
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    with serve(HubLookalike(MODEL, dict(FILES))) as elsewhere:
        hub.redirects["vocab.txt"] = f"{elsewhere.endpoint}/large/{COMMIT}/vocab.txt"
        resolve_model(MODEL)
    assert elsewhere.requests
    assert "hf_secret" not in repr(elsewhere.requests)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_IMPLICIT_TOKEN", True)
    with pytest.raises(HubError, match="no public model"):
        resolve_model(MODEL)


def test_another_revision_is_fetched_and_remembered(hub, folder):
    hub.commits["refs/pr/1"] = COMMIT
    assert resolve_model(MODEL, revision="refs/pr/1").name == COMMIT
    assert (folder / "refs" / "refs" / "pr" / "1").read_text() == COMMIT
    with pytest.raises(HubError, match="no such revision"):
        resolve_model(MODEL, revision="v9")


@pytest.mark.parametrize("revision", ["", "../../outside", "/etc/passwd", "a\nb", "C:main"])
def test_a_revision_that_is_none_is_refused(hub, revision):
    with pytest.raises(SettingsError, match=r"revision .* must be a branch, a tag or a commit"):
        resolve_model(MODEL, revision=revision)
    assert not hub.requests


def test_no_network_names_the_cache_and_offline_mode(hub, monkeypatch):
    with socket.socket() as taken:  # bound and not listening: refuses each connection
        taken.bind(("127.0.0.1", 0))
        endpoint = f"http://127.0.0.1:{taken.getsockname()[1]}"
        monkeypatch.setattr(constants, "ENDPOINT", endpoint)
        message = r"can't be reached \(Connection refused\); .*HF_HUB_OFFLINE=1 .* cache, "
        with pytest.raises(HubError, match=message):
            resolve_model(MODEL)


@pytest.mark.parametrize("endpoint", ["http://[", "huggingface.co", "file:///tmp"])
def test_an_endpoint_that_is_none_is_told(hub, monkeypatch, endpoint):
    monkeypatch.setattr(constants, "ENDPOINT", endpoint)
    with pytest.raises(HubError, match=f"{re.escape(endpoint)} can't be reached"):
        resolve_model(MODEL)


def test_a_server_that_says_nothing_is_left(hub, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", 0.05)
    hub.stalled = threading.Event()
    with pytest.raises(HubError, match=r"no answer within 0.05 s; .*HF_HUB_DOWNLOAD_TIM"):
        resolve_model(MODEL)
    hub.stalled.set()


def test_a_full_disk_is_a_storage_error(hub, monkeypatch):
    def refuse(descriptor: int, data: memoryview) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(storage, "write", refuse)
    with pytest.raises(StorageError, match="can't be written: No space left on device"):
        resolve_model(MODEL)


def test_a_blob_has_its_name_only_when_it_is_safe(hub, monkeypatch):
    hub.files = {"config.json": FILES["config.json"]}
    done = []
    for name in ("write", "sync", "rename", "link"):
        original = getattr(storage, name)
        monkeypatch.setattr(
            storage, name, lambda *words, n=name, o=original: done.append(n) or o(*words)
        )
    resolve_tokenizer(MODEL)
    assert done == ["write", "sync", "rename", "link", "write", "sync", "rename"]  # then the ref


def test_without_links_a_file_takes_its_blobs_place(hub, monkeypatch):
    def refuse(path: Path, target: str) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(storage, "link", refuse)
    snapshot = resolve_model(MODEL)
    assert list_files(snapshot) == WANTED
    assert not any(path.is_symlink() for path in snapshot.iterdir())
    hub.requests.clear()
    assert resolve_model(MODEL) == snapshot
    assert not hub.asked("config.json")


@pytest.mark.parametrize("revision", [None, "main", COMMIT])
def test_offline_takes_what_is_in_the_cache(hub, monkeypatch, revision):
    snapshot = resolve_model(MODEL)
    hub.requests.clear()
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    assert resolve_model(MODEL, revision=revision) == snapshot
    assert not hub.requests


@pytest.mark.parametrize(
    ("is_begun", "revision", "message"),
    [
        (False, None, "isn't in the cache"),
        (False, COMMIT, "isn't in the cache"),
        (True, "other", "someone/tiny-bert at other isn't in the cache"),
        (True, "main", "in the cache, has no weights"),
    ],
)
def test_offline_without_the_model_says_what_to_do(hub, monkeypatch, is_begun, revision, message):
    if is_begun:
        resolve_tokenizer(MODEL)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(HubError, match=f"{message}.*unset HF_HUB_OFFLINE once"):
        resolve_model(MODEL, revision=revision)


@pytest.mark.parametrize(
    ("name", "size", "message"),
    [
        ("model.safetensors", 10**11 + 1, "would have 100 GB, and at most 100 GB are fetched"),
        ("vocab.txt", (32 << 20) + 1, "vocab.txt .* would have 33,554,433 bytes, and none needs"),
    ],
)
def test_too_much_is_refused_before_it_is_fetched(hub, name, size, message):
    hub.siblings[name] = {"size": size}
    if name == "model.safetensors":
        hub.siblings[name] = {"lfs": {"size": size, "sha256": "0" * 64}}
    with pytest.raises(UnsafeFileError, match=message):
        resolve_model(MODEL)
    assert not hub.asked(name)


CIRCLE = f"/{MODEL}/resolve/{COMMIT}/vocab.txt"


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://127.0.0.1/x", "data:x", CIRCLE])
def test_a_redirect_to_another_scheme_or_in_a_circle_is_refused(hub, tmp_path, target):
    hub.redirects["vocab.txt"] = target
    with pytest.raises(HubError, match=r"\((Unsupported|Remote|Invalid)|TooManyRedirects"):
        resolve_model(MODEL)
    assert list_outside(tmp_path) == []


@pytest.mark.parametrize(
    "listing",
    [
        b"",
        b"<html>",
        b"[" * 100_000,
        b"[]",
        json_bytes({"sha": "../../x", "siblings": []}),
        json_bytes({"sha": COMMIT, "siblings": [{"rfilename": "config.json"}]}),
        json_bytes({"sha": COMMIT, "siblings": [{"rfilename": 1, "size": -1, "blobId": "../x"}]}),
    ],
)
def test_a_list_of_files_that_is_none_is_refused(hub, listing):
    hub.listing = listing
    with pytest.raises(HubError, match=r"list of the files of .* isn't one .*is HF_ENDPOINT a Hub"):
        resolve_model(MODEL)


def test_an_endless_list_of_files_is_refused(hub, monkeypatch):
    monkeypatch.setattr(hub_download, "LISTING_LIMIT_BYTES", 100)
    with pytest.raises(HubError, match="answers with more than 100 bytes"):
        resolve_model(MODEL)


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        (["config.json"], "tiny-bert on the Hub has no config.json"),
        (
            ["model.safetensors", "pytorch_model.bin"],
            "has no weights as safetensors or for PyTorch",
        ),
    ],
)
def test_what_is_no_model_is_not_fetched(hub, missing, message):
    for name in missing:
        del hub.files[name]
    with pytest.raises(HubError, match=message):
        resolve_model(MODEL)


IDS = ["bert-base-uncased", "google-bert/bert-base-uncased", "a", "A.b_c-1/d", "123"]
NO_IDS = ["", "a/b/c", "../a", "./a", "/a", "a/", "a--b", "a..b", "a.git", ".a", "a b", "é", "a\n"]


@pytest.mark.parametrize("text", [*IDS, *NO_IDS, "x" * 96, "x" * 97])
def test_an_id_is_what_the_hub_takes_for_one(text):
    try:
        validate_repo_id(text)
        expected = True
    except HFValidationError:
        expected = False
    assert is_hub_id(text) == expected
    assert expected or text not in IDS
    assert not expected or text not in NO_IDS


def test_what_is_on_the_disk_wins(hub, tmp_path):
    (tmp_path / MODEL).mkdir(parents=True)
    assert resolve_model(MODEL) == Path(MODEL)
    assert resolve_model(tmp_path) == tmp_path
    with pytest.raises(SettingsError, match=r"revision \(main\) .* is on this disk; leave it out"):
        resolve_model(MODEL, revision="main")
    assert not hub.requests


@pytest.mark.parametrize(
    "text", ["no/such/folder", "./model", "nomodel", "tiny2", "x\0", "y" * 5000]
)
def test_what_is_neither_is_told(hub, text):
    with pytest.raises(MissingFileError, match="doesn't exist, and isn't the id of a model"):
        resolve_model(text)
    assert not hub.requests


def test_what_may_not_be_looked_up_is_no_model_of_the_hub(hub, monkeypatch):
    def refuse(_: Path) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "stat", refuse)
    with pytest.raises(StorageError, match="secret/model can't be read: Permission denied"):
        resolve_model("secret/model")
    assert not hub.requests


CHILD = """
import sys
from bertkit.checkpoints.hub import resolve_model
assert "huggingface_hub" not in sys.modules
print(resolve_model(sys.argv[1]))
assert "torch" not in sys.modules
"""


def test_the_hubs_own_variables_are_heeded_and_nothing_else_is_said(hub, tmp_path):
    hub.token = "hf_of_the_environment"
    home = tmp_path / "home"
    environment = {
        **os.environ,
        "HF_ENDPOINT": hub.endpoint + "/",
        "HF_HOME": str(home),
        "HF_TOKEN": hub.token,
        "HF_HUB_ENABLE_HF_TRANSFER": "1",  # huggingface_hub warns of it
    }
    for offline in ("0", "1"):
        child = subprocess.run(
            [sys.executable, "-W", "error", "-c", CHILD, MODEL],
            env={**environment, "HF_HUB_OFFLINE": offline},
            capture_output=True,
            text=True,
            check=False,
        )
        assert child.stderr == ""
        assert Path(child.stdout.strip()).is_relative_to(home / "hub")
        hub.token = "another one"


def test_what_a_ref_stands_for_is_written_under_the_lock_of_its_name(hub, folder, monkeypatch):
    def write_held(path: Path, data: bytes) -> None:
        with pytest.raises(Timeout):
            FileLock(locks / "refs--refs--pr--1.lock").acquire(timeout=0)
        path.write_bytes(data)

    locks = folder.parent / ".locks" / folder.name
    monkeypatch.setattr(hub_download, "write_file", write_held)
    hub.commits["refs/pr/1"] = COMMIT
    snapshot = resolve_model(MODEL, revision="refs/pr/1")
    assert (folder / "refs" / "refs" / "pr" / "1").read_text() == snapshot.name
