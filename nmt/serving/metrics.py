"""What a server has done since it started, in numbers for Prometheus, without any text of a request."""

from collections.abc import Iterable, Mapping, Sized

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

from nmt.serving.directions import ServedModel
from nmt.serving.log import Record


class Metrics:
    """The numbers of one server.

    Args:
        queues: The waiting sentences of each direction, by its name.
        models: The models that answer.

    Attributes:
        sentences: Counter of translated sentences, by direction.
    """

    def __init__(self, queues: Mapping[str, Sized], models: Iterable[ServedModel] = ()) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the time of a label's first use helps nobody
        registry = self._registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        labels = ["direction", "path", "update", "identity"]
        info = Gauge("nmt_model_info", "A model that answers; always 1.", labels, registry=registry)
        for model in models:
            info.labels(*(getattr(model, label) for label in labels)).set(1)
        self._requests = Counter("nmt_requests", "Requests; 5xx are errors.", ["route", "status"], registry=registry)
        self._seconds = Histogram("nmt_request_seconds", "Time to the reply's end.", ["route"], registry=registry)
        waiting = Gauge("nmt_queue_sentences", "Sentences that wait for a model.", ["direction"], registry=registry)
        self.sentences = Counter("nmt_sentences", "Translated sentences.", ["direction"], registry=registry)
        for name, queue in queues.items():
            self.sentences.labels(name)
            waiting.labels(name).set_function(queue.__len__)

    def count(self, record: Record) -> None:
        """Count a request."""
        self._requests.labels(record.route, record.status).inc()
        self._seconds.labels(record.route).observe(record.milliseconds / 1000)

    def render(self) -> bytes:
        """Numbers for Prometheus: requests, errors, durations, and the sentences that were translated or wait."""
        return generate_latest(self._registry)
