"""The work of a server since it started, in numbers for Prometheus, without any text of a request."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial

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

MODEL_LABELS = ["direction", "path", "update", "identity"]


class Metrics:
    """The numbers of one server.

    Args:
        count_waiting: Returns the number of waiting sentences of each direction, by its name.

    Attributes:
        sentences: Counter of translated sentences, by direction.
    """

    def __init__(self, count_waiting: Callable[[], Mapping[str, int]]) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the time of a label's first use helps nobody
        registry = self._registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        self._models = Gauge("nmt_model_info", "A model that answers; always 1.", MODEL_LABELS, registry=registry)
        self._requests = Counter("nmt_requests", "Requests; 5xx are errors.", ["route", "status"], registry=registry)
        self._seconds = Histogram("nmt_request_seconds", "Time to the reply's end.", ["route"], registry=registry)
        waiting = Gauge("nmt_queue_sentences", "Sentences that wait for a model.", ["direction"], registry=registry)
        self.sentences = Counter("nmt_sentences", "Translated sentences.", ["direction"], registry=registry)
        for name in count_waiting():
            self.sentences.labels(name)
            waiting.labels(name).set_function(partial(_count, count_waiting, name))

    def show_models(self, models: Iterable[ServedModel]) -> None:
        """Name the models that answer from now on."""
        self._models.clear()
        for model in models:
            values = [getattr(model, label) for label in MODEL_LABELS]
            self._models.labels(*values).set(1)

    def count(self, record: Record) -> None:
        """Count a request."""
        self._requests.labels(record.route, record.status).inc()
        self._seconds.labels(record.route).observe(record.milliseconds / 1000)

    def render(self) -> bytes:
        """Numbers for Prometheus: requests, errors, durations, and the sentences that were translated or wait."""
        return generate_latest(self._registry)


def _count(count_waiting: Callable[[], Mapping[str, int]], name: str) -> float:
    return count_waiting()[name]
