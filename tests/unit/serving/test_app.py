"""What the application does with a request, whatever its route."""

import http.client
import json
import threading
from contextlib import closing

from tests.hostile.raw_http import wait_until
from tests.unit.serving.running import running
from tests.waiting import TIMEOUT_SECONDS

from bertkit.inference.fill_mask import FillMask

FILL = "/v1/models/words/fill-mask"
TEXT = "the [MASK] saw"


def test_what_a_client_that_left_asked_for_is_not_computed(models, monkeypatch):
    computed, is_computing, may_go_on = [], threading.Event(), threading.Event()
    compute_window = FillMask.compute_window

    def compute_when_told(self, window):
        computed.append(window)
        is_computing.set()
        assert may_go_on.wait(TIMEOUT_SECONDS)
        return compute_window(self, window)

    with running({"words": models["words"]}, deterministic=True) as client:  # a batch an input
        monkeypatch.setattr(FillMask, "compute_window", compute_when_told)
        leaving = http.client.HTTPConnection("127.0.0.1", client.server.port, TIMEOUT_SECONDS)
        with closing(leaving):
            headers = {"content-type": "application/json"}
            leaving.request("POST", FILL, json.dumps({"inputs": [TEXT] * 9}), headers)
            assert is_computing.wait(TIMEOUT_SECONDS)
        try:
            wait_until(lambda: b'te_queue_size{model="words"} 0' in client.get("/metrics").content)
        finally:
            may_go_on.set()
        assert client.post(FILL, {"inputs": TEXT}).status == 200
    assert len(computed) == 1 + 1
