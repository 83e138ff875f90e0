"""Models are replaced while they are asked: no request is lost, and no answer is a mixture."""

import gc
import shutil
import socket
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from tests.closeness import close
from tests.unit.inference.small import save_small
from tests.unit.inference.small_task import save_classifier
from tests.unit.serving.running import running

from bertkit.base.errors import BertkitError
from bertkit.base.wings import has_wing
from bertkit.inference.predictor import Predictor
from bertkit.inference.settings import FillOptions
from bertkit.models.bert.fine_tuning import BertForSequenceClassification
from bertkit.serving import service
from bertkit.serving.service import MAX_OPTION_CHARS, MAX_VARIANTS, ServedModel
from bertkit.serving.settings import ServeSettings
from bertkit.tokenization.tokenizer import Tokenizer

KEY = {"authorization": "Bearer of-the-admin"}
TEXT = "the cat saw a dog"
CLASSIFY, RELOAD = "/v1/models/sentiment/classify", "/v1/models/sentiment/reload"


@pytest.fixture
def folder(tmp_path):
    """A classifier's folder, and beside it that of another one."""
    save_classifier(tmp_path / "sentiment")
    save_classifier(tmp_path / "newer", num_hidden_layers=1)
    save_small(tmp_path / "words")
    return tmp_path


@pytest.fixture
def server(folder, monkeypatch):
    monkeypatch.setenv("BERTKIT_ADMIN_KEY", "of-the-admin")
    models = {name: str(folder / name) for name in ("sentiment", "words")}
    with running(models) as client:
        yield client


def replace_files(folder):
    shutil.copytree(folder / "newer", folder / "sentiment", dirs_exist_ok=True)


def classify(client):
    answer = client.post(CLASSIFY, {"inputs": TEXT})
    assert answer.status == 200, answer.content
    return answer.json["results"]["probabilities"]


def classify_alone(path):
    return close(Predictor.load(str(path), device="cpu")(TEXT).probabilities, "float32")


def wait_until(is_so, client):
    """Ask the server something again and again until it is so."""
    assert any(is_so() or client.get("/health").status != 200 for _ in range(30_000))
    assert is_so()


def test_reloading_needs_a_key_of_its_own(client, server):
    refused = client.post(RELOAD, {}, **KEY)
    assert refused.status == 403
    assert "BERTKIT_ADMIN_KEY" in refused.json["error"]["message"]
    assert server.post(RELOAD, {}).status == 401
    assert server.post(RELOAD, {}, authorization="Bearer other").status == 401
    assert server.post(RELOAD, {}, **KEY).json == {"loaded": ["sentiment"]}
    assert server.post("/v1/reload", {}, **KEY).json == {"loaded": ["sentiment", "words"]}
    assert server.post("/v1/models/none/reload", {}, **KEY).status == 404
    assert classify(server)


def test_a_model_is_replaced_while_it_is_asked(server, folder):
    old, new = classify_alone(folder / "sentiment"), classify_alone(folder / "newer")
    model = server.server.service.models["sentiment"]
    kept = weakref.ref(model.loaded.pipelines["classify"].engine)
    assert classify(server) == old
    is_over = threading.Event()

    def ask():
        found = []
        while not is_over.is_set():
            found.append(classify(server))
        return found

    with ThreadPoolExecutor(4) as pool:
        asking = [pool.submit(ask) for _ in range(4)]
        try:
            replace_files(folder)
            assert server.post(RELOAD, {}, **KEY).status == 200
            assert classify(server) == new
        finally:
            is_over.set()
        found = [one for each in asking for one in each.result()]
    assert all(one in (old, new) for one in found)
    assert not all(one == new for one in found)
    gc.collect()
    assert kept() is None


def test_a_damaged_folder_changes_nothing(server, folder, caplog):
    told: list[None] = []
    server.server.service.tell_others = lambda: told.append(None)
    old = classify_alone(folder / "sentiment")
    before = server.server.service.models["words"].loaded
    weights = folder / "sentiment" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    answer = server.post("/v1/reload", {}, **KEY)
    assert answer.status == 424
    assert "sentiment stays as it was: " in answer.json["error"]["message"]
    assert "sentiment stays as it was: " in caplog.text
    assert len(told) == 1  # of the other model, which was loaded
    assert classify(server) == old
    assert server.server.service.models["words"].loaded is not before
    assert server.get("/ready").status == 200


def test_a_reload_goes_on_when_its_client_leaves(server):
    model = server.server.service.models["words"]
    loaded = model.loaded
    head = (
        f"POST /v1/models/words/reload HTTP/1.1\r\nHost: a\r\nAuthorization: {KEY['authorization']}"
    )
    for _ in range(6):
        with socket.create_connection(("127.0.0.1", server.server.port), 60) as connection:
            connection.sendall(f"{head}\r\nContent-Length: 0\r\n\r\n".encode())
    wait_until(lambda: model.loaded is not loaded, server)
    assert server.server.service.num_loading <= 1
    assert len(server.server.service.reloads) <= service.MAX_RELOADS
    wait_until(lambda: not server.server.service.reloads, server)
    assert server.post("/v1/models/words/reload", {}, **KEY).status == 200


def test_what_runs_still_finds_its_model_when_the_server_stops(server):
    server.server.service.is_stopping = True
    try:
        assert server.server.service.find("words").name == "words"
        refused = server.post(CLASSIFY, {"inputs": TEXT})
        assert (refused.status, refused.json["error"]["message"]) == (503, "the server is stopping")
    finally:
        server.server.service.is_stopping = False


def test_a_model_that_is_loaded_reads_its_folder_no_longer(server, folder):
    (folder / "words").rename(folder / "elsewhere")
    (folder / "words").mkdir()
    (folder / "words" / "tokenizer_config.json").write_text('{"model_max_length": 8}')
    assert server.get("/v1/models").status == 200
    assert server.get("/v1/models/words/info").json["max_input_length"] == 24
    tasks = {"fill-mask": "the [MASK]" * 8, "score": "the cat"}
    if has_wing("bertkit.interpret"):
        tasks["attention"] = "the cat"
    for task, text in tasks.items():
        assert server.post(f"/v1/models/words/{task}", {"inputs": text}).status == 200


def test_signals_that_come_together_load_once_more(server):
    service_of_it, loop = server.server.service, []
    loaded = service_of_it.models["words"].loaded

    def send():
        for _ in range(10):
            service_of_it.reload_soon()
        loop.append(len(service_of_it.reloads))

    service_of_it.models["words"].worker.loop.call_soon_threadsafe(send)
    wait_until(lambda: loop and not service_of_it.reloads, server)
    assert loop == [2]
    assert service_of_it.models["words"].loaded is not loaded


def break_model(server):
    """Let a model fail from now on."""
    pipeline = server.server.service.models["sentiment"].loaded.pipelines["classify"]
    object.__setattr__(pipeline, "engine", None)


def test_a_model_that_fails_is_loaded_again(server, monkeypatch, caplog):
    monkeypatch.setattr(service, "LEAST_SECONDS_BETWEEN_LOADS", 0.0)
    before = classify(server)
    break_model(server)
    for _ in range(service.MAX_FAILURES):
        assert server.post(CLASSIFY, {"inputs": TEXT}).status == 424
        filled = server.post("/v1/models/words/fill-mask", {"inputs": "the [MASK] saw"})
        assert filled.status == 200
    wait_until(lambda: server.post(CLASSIFY, {"inputs": TEXT}).status == 200, server)
    assert classify(server) == close(before, "float32")
    assert "sentiment failed 3 times in a row, and is loaded again" in caplog.text


def test_a_model_that_fails_soon_after_it_was_loaded_is_not_loaded_again(server):
    model = server.server.service.models["sentiment"]
    loaded = model.loaded
    break_model(server)
    for _ in range(service.MAX_FAILURES + 3):
        assert server.post(CLASSIFY, {"inputs": TEXT}).status == 424
    assert model.loaded is loaded
    assert not server.server.service.reloads


def test_a_model_whose_numbers_are_not_finite_is_not_served(folder):
    model = BertForSequenceClassification.from_pretrained(folder / "sentiment")
    with torch.no_grad():
        for weight in model.parameters():
            weight.fill_(3e38)
    model.save_pretrained(folder / "newer")
    Tokenizer.load(folder / "sentiment").save(folder / "newer")
    with pytest.raises(BertkitError, match="aren't finite"):
        ServedModel("m", str(folder / "newer"), ServeSettings(device="cpu")).load()


def test_batch_tokens_bound_models_without_an_engine_too(folder):
    with running({"words": str(folder / "words")}, max_batch_tokens=64) as client:
        assert client.server.service.models["words"].worker.batch_tokens == 64


def test_options_are_bounded(client):
    options = {"targets": ["cat" * MAX_OPTION_CHARS]}
    answer = client.post("/v1/models/words/fill-mask", {"inputs": "the [MASK]", "options": options})
    assert answer.status == 400
    assert "give fewer" in answer.json["error"]["message"]


def test_options_that_many_requests_have_stay_when_one_client_tries_all(client):
    loaded = client.server.service.models["words"].loaded
    usual = loaded.choose("fill-mask", FillOptions(top_k=2))
    for number in range(3, 2 * MAX_VARIANTS):
        loaded.choose("fill-mask", FillOptions(top_k=number))
        assert loaded.choose("fill-mask", FillOptions(top_k=2)) is usual
