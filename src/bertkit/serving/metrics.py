"""What a server counts, in Prometheus's form, under text-embeddings-inference's names.

Each process has a registry of its own, so that servers in one process, as in tests, don't mix.
"""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST as OPEN_METRICS

from bertkit.serving.worker import ComputedBatch, Work

SECONDS = [1e-4 * 2**power for power in range(18)]  # 0.1 ms to 13 s
SIZES = [2**power for power in range(13)]
TOKENS = [2**power for power in range(21)]

__all__ = ["OPEN_METRICS", "ServerMetrics"]


class ServerMetrics:
    """The metrics of one server; those of requests are labeled by model."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = self._count("te_request", "Requests that were answered.", "model", "route")
        self.refusals = self._count("te_request_failure", "Requests that weren't.", "model", "err")
        self.duration = self._measure("te_request_duration", "Seconds of a request.", SECONDS)
        self.queue_duration = self._measure(
            "te_request_queue_duration", "Seconds that a request waited.", SECONDS
        )
        self.inference_duration = self._measure(
            "te_request_inference_duration", "Seconds from its first batch to its end.", SECONDS
        )
        self.input_length = self._measure("te_request_input_length", "Tokens of a request.", TOKENS)
        self.batch_size = self._measure("te_batch_next_size", "Requests of a batch.", SIZES)
        self.batch_tokens = self._measure("te_batch_next_tokens", "Tokens of a batch.", TOKENS)
        self.queue = Gauge(
            "te_queue_size", "Requests that wait or run.", ["model"], registry=self.registry
        )

    def note_batch(self, model: str, batch: ComputedBatch) -> None:
        """Count a batch; called in the thread of a model."""
        self.batch_size.labels(model).observe(batch.num_requests)
        self.batch_tokens.labels(model).observe(batch.num_tokens)

    def note_answer(self, model: str, route: str, work: Work, seconds: float) -> None:
        """Count a request that was answered."""
        self.requests.labels(model, route).inc()
        self.duration.labels(model).observe(seconds)
        self.queue_duration.labels(model).observe(work.begun - work.queued)
        self.inference_duration.labels(model).observe(work.ended - work.begun)
        self.input_length.labels(model).observe(work.num_tokens)

    def note_refusal(self, model: str, kind: str) -> None:
        """Count a request that was refused or failed."""
        self.refusals.labels(model, kind).inc()

    def write(self) -> bytes:
        """Return all metrics as text."""
        return bytes(generate_latest(self.registry))

    def _count(self, name: str, meaning: str, *labels: str) -> Counter:
        return Counter(name, meaning, labels, registry=self.registry)

    def _measure(self, name: str, meaning: str, bounds: list[float] | list[int]) -> Histogram:
        return Histogram(name, meaning, ["model"], buckets=bounds, registry=self.registry)
