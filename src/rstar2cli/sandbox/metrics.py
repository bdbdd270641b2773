"""What a service counts, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from rstar2cli.sandbox.outcome import Outcome

_SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 60)
_GAUGES = {
    "running": "Calls and cells that run",
    "waiting": "Calls accepted that wait for a worker",
    "warm_processes": "Warm processes",
    "sessions": "Open sessions",
    "restarts": "Workers and warm processes that were replaced",
}


class Metrics:
    """The metrics of one service."""

    def __init__(self, stats: Callable[[], Mapping[str, Any]], pending: Callable[[], int]) -> None:
        """``stats``: the sandbox's gauges; ``pending``: calls accepted and not finished."""
        self._registry = CollectorRegistry()
        self._outcomes = Counter(
            "rstar2_sandbox_calls", "Calls and cells by outcome", ["outcome"], registry=self._registry
        )
        self._run = Histogram(
            "rstar2_sandbox_run_seconds", "Wall time of the code", buckets=_SECONDS, registry=self._registry
        )
        self._wait = Histogram(
            "rstar2_sandbox_wait_seconds", "Time before the code began", buckets=_SECONDS, registry=self._registry
        )
        self._refused = Counter(
            "rstar2_sandbox_refused", "Requests that were refused, by HTTP status", ["status"], registry=self._registry
        )
        self._registry.register(_Gauges(stats, pending))

    def finished(self, outcome: Outcome) -> None:
        """Count a call or cell."""
        self._outcomes.labels(outcome.kind).inc()
        self._wait.observe(outcome.waited_seconds)
        if not outcome.infrastructure:
            self._run.observe(outcome.seconds)

    def refused(self, status: int) -> None:
        """Count a refused request."""
        self._refused.labels(str(status)).inc()

    def text(self) -> bytes:
        """All of them in Prometheus' text format."""
        return generate_latest(self._registry)


class _Gauges(Collector):
    def __init__(self, stats: Callable[[], Mapping[str, Any]], pending: Callable[[], int]) -> None:
        self._stats, self._pending = stats, pending

    def collect(self) -> Iterable[Metric]:
        """The gauges as they are now."""
        stats = self._stats()
        yield GaugeMetricFamily("rstar2_sandbox_pending", "Calls accepted and not finished", value=self._pending())
        for name, text in _GAUGES.items():
            yield GaugeMetricFamily(f"rstar2_sandbox_{name}", text, value=stats[name])
