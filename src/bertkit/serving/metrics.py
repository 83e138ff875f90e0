"""What a server counts, in Prometheus's form, under text-embeddings-inference's names.

Each server has a registry of its own, so that servers in one process, as in tests, don't mix.
"""

import re

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    disable_created_metrics,
    generate_latest,
)

from bertkit.serving.sharing.fair_queue import ModelRequest

SECONDS = [1e-4 * 2**power for power in range(18)]  # 0.1 ms to 13 s
SIZES = [2**power for power in range(13)]
TOKENS = [2**power for power in range(21)]
REASONS = {"backend": "inference", "empty": "validation", "unknownmodel": "model_type"}
COUNTER = re.compile(rb"^((?:# HELP |# TYPE )?te_\w+)_total\b", re.MULTILINE)
COUNTER_TYPE = re.compile(rb"^(# TYPE te_\w+) counter$", re.MULTILINE)
SAMPLE = re.compile(rb"^(te_\w+\{.*)\} ", re.MULTILINE)
WAITS = "Seconds that a request waited."
COMPUTES = "Seconds from its first batch to its end, tokenizing included."


class ServerMetrics:
    """The metrics of one server, labeled by model; the label is empty where none was found.

    Where several workers share a port, all have a label for the one that answers.
    """

    def __init__(self, worker: str = "") -> None:
        self._worker = worker.encode()
        disable_created_metrics()  # type: ignore[no-untyped-call]  # a line for each other one
        self.registry = CollectorRegistry()
        self.requests = self._count("te_request_count", "Requests that ended.", "route")
        self.successes = self._count("te_request_success", "Requests that were answered.", "route")
        self.failures = self._count("te_request_failure", "Requests that weren't.", "err")
        self.unknown_tokens = self._count("te_request_unknown_tokens", "Tokens read as unknown.")
        self.duration = self._measure("te_request_duration", "Seconds of a request.", SECONDS)
        self.queue_duration = self._measure("te_request_queue_duration", WAITS, SECONDS)
        self.inference_duration = self._measure("te_request_inference_duration", COMPUTES, SECONDS)
        self.input_length = self._measure("te_request_input_length", "Tokens of a request.", TOKENS)
        self.batch_size = self._measure("te_batch_next_size", "Requests of a batch.", SIZES)
        self.batch_tokens = self._measure("te_batch_next_tokens", "Tokens of a batch.", TOKENS)
        self.queue = Gauge(
            "te_queue_size", "Requests that wait or run.", ["model"], registry=self.registry
        )

    def note_batch(self, model: str, num_requests: int, num_tokens: int) -> None:
        """Count a batch; called in the thread of a model."""
        self.batch_size.labels(model).observe(num_requests)
        self.batch_tokens.labels(model).observe(num_tokens)

    def note_request(
        self, model: str, route: str, failure: str, request: ModelRequest | None, seconds: float
    ) -> None:
        """Count a request that ended, and measure it if a model has answered it.

        `failure` is empty, or the kind of its error; `request` is what was asked of a model.
        """
        self.requests.labels(model, route).inc()
        if failure:
            kind = failure.lower()
            self.failures.labels(model, REASONS.get(kind, kind)).inc()
            return
        self.successes.labels(model, route).inc()
        if request is None:
            return
        self.duration.labels(model).observe(seconds)
        self.queue_duration.labels(model).observe(request.begun - request.queued)
        self.inference_duration.labels(model).observe(request.ended - request.begun)
        self.input_length.labels(model).observe(request.num_tokens)
        self.unknown_tokens.labels(model).inc(request.num_unknown)

    def write(self, *, is_open: bool = False) -> bytes:
        """Return all metrics as text, counters without the `_total` of Prometheus's client.

        In OpenMetrics' form, which has no counters of such names, their type is unknown.
        """
        text = COUNTER.sub(rb"\1", generate_latest(self.registry))
        if is_open:
            text = COUNTER_TYPE.sub(rb"\1 unknown", text) + b"# EOF\n"
        return SAMPLE.sub(rb'\1,worker="%b"} ' % self._worker, text) if self._worker else text

    def _count(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(name, meaning, ["model", *labels], registry=self.registry)

    def _measure(self, name: str, meaning: str, bounds: list[float] | list[int]) -> Histogram:
        return Histogram(name, meaning, ["model"], buckets=bounds, registry=self.registry)
