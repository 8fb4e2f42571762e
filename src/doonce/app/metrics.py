"""The one metrics registry: what the parts report, under names that an operator will look for."""

from __future__ import annotations

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

FLUSH_BUCKETS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
SECONDS_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Labelled(dict[tuple[str, ...], Any]):
    """The children of one metric by their labels, each looked up in the metric only once."""

    def __init__(self, metric: Counter | Histogram) -> None:
        super().__init__()
        self._metric = metric

    def __missing__(self, labels: tuple[str, ...]) -> Any:
        child = self[labels] = self._metric.labels(*labels)
        return child


class Metrics:
    """Counters and histograms of one process; implements every observer that the parts ask for."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._claimed = Counter(
            "doonce_work_claimed_total", "Work items claimed.", ["family"], registry=self.registry
        )
        self._outcomes = Labelled(
            Counter(
                "doonce_effect_outcomes_total",
                "Attempts ended and verdicts recorded, by operation and outcome.",
                ["operation", "outcome"],
                registry=self.registry,
            )
        )
        self._stale = Counter(
            "doonce_stale_refusals_total",
            "Steps refused because the claim was no longer live.",
            ["family", "step"],
            registry=self.registry,
        )
        self._marks_refused = Counter(
            "doonce_marks_refused_total",
            "Dispatch marks refused, by fence.",
            ["fence"],
            registry=self.registry,
        )
        self._rollbacks, self._unknown_commits = _of_the_database(self.registry)
        self._flushes = Histogram(
            "doonce_flush_rows",
            "Rows that shared one commit.",
            ["operation"],
            buckets=FLUSH_BUCKETS,
            registry=self.registry,
        )
        self._calls = Labelled(
            Histogram(
                "doonce_call_seconds",
                "Calls out, from asking for a connection to the end of the answer.",
                ["operation"],
                buckets=SECONDS_BUCKETS,
                registry=self.registry,
            )
        )
        self._delivered, self._turned_away, self._events = _of_deliveries(self.registry)
        self._hydrated = _of_hydrations(self.registry)
        self._refused = _of_connections(self.registry)
        self._pages = _of_pages(self.registry)
        self._links = _of_links(self.registry)
        self.depth, self.newer, self.age = _of_work(self.registry)
        self.unknown = Gauge(
            "doonce_unknown_outcomes", "Attempts that nobody knows the outcome of.", registry=self.registry
        )
        self.gaps, self.gaps_left = _of_gaps(self.registry)
        self._retired, self.overdue, self.walked = _of_retention(self.registry)
        self.ready = Gauge(
            "doonce_ready", "1 when this process is ready, 0 otherwise.", registry=self.registry
        )

    def claimed(self, family: str, items: int) -> None:
        """Count a claim."""
        self._claimed.labels(family).inc(items)

    def ended(self, operation: str, outcome: str) -> None:
        """Count an attempt's end or a verdict."""
        self._outcomes[operation, outcome].inc()

    def linked(self, operation: str, fate: str) -> None:
        """Count what became of the link of an accepted create."""
        self._links.labels(operation, fate).inc()

    def stale(self, family: str, step: str) -> None:
        """Count a step that came too late."""
        self._stale.labels(family, step).inc()

    def mark_refused(self, why: str) -> None:
        """Count a refused mark."""
        self._marks_refused.labels(why).inc()

    def rolled_back(self, operation: str, fault: str) -> None:
        """Count a proven rollback."""
        self._rollbacks.labels(operation, fault).inc()

    def commit_unknown(self, operation: str) -> None:
        """Count an unknown commit."""
        self._unknown_commits.labels(operation).inc()

    def flushed(self, operation: str, rows: int) -> None:
        """Note the size of a flush."""
        self._flushes.labels(operation).observe(rows)

    def call_took(self, operation: str, seconds: float) -> None:
        """Note how long a call took."""
        self._calls[operation,].observe(seconds)

    def delivered(self, fate: str) -> None:
        """Count a durable delivery."""
        self._delivered.labels(fate).inc()

    def turned_away(self, reason: str) -> None:
        """Count a delivery that got no receipt."""
        self._turned_away.labels(reason).inc()

    def event(self, fate: str) -> None:
        """Count an event that was told of."""
        self._events.labels(fate).inc()

    def hydrated(self, fate: str) -> None:
        """Count a whole object that was read for an event, or given up."""
        self._hydrated.labels(fate).inc()

    def page(self, fate: str) -> None:
        """Count a page of a catch-up: read, to be asked for again, or its catch-up's last because that is dead."""
        self._pages.labels(fate).inc()

    def refused(self, reason: str) -> None:
        """Count a connection that never became a request."""
        self._refused.labels(reason).inc()

    def retired(self, family: str, items: int) -> None:
        """Count ended work that became history."""
        self._retired.labels(family).inc(items)

    def text(self) -> bytes:
        """The registry in the exposition format."""
        return generate_latest(self.registry)


def _of_gaps(registry: CollectorRegistry) -> tuple[Gauge, Gauge]:
    gaps = Gauge(
        "doonce_open_gaps",
        "Routes whose deliveries may have been lost for good, until it was read or somebody looked.",
        registry=registry,
    )
    left = Gauge(
        "doonce_gaps_for_operators",
        "Open gaps that nothing reads: no reconciliation is declared, or the catch-up is dead.",
        registry=registry,
    )
    return gaps, left


def _of_pages(registry: CollectorRegistry) -> Counter:
    return Counter(
        "doonce_catch_up_pages_total",
        "Pages that catch-ups asked providers for, by what became of them.",
        ["fate"],
        registry=registry,
    )


def _of_retention(registry: CollectorRegistry) -> tuple[Counter, Gauge, Gauge]:
    retired = Counter(
        "doonce_work_retired_total",
        "Ended work items that this process moved into history.",
        ["family"],
        registry=registry,
    )
    overdue = Gauge(
        "doonce_retention_overdue_seconds",
        "How long ago the oldest work ended whose time is over and that something still needs; 0 for none.",
        registry=registry,
    )
    walked = Gauge(
        "doonce_retention_walk_age_seconds",
        "How long ago the last whole walk over the work ended; -1 before the first one.",
        registry=registry,
    )
    return retired, overdue, walked


def _of_connections(registry: CollectorRegistry) -> Counter:
    return Counter(
        "doonce_http_refused_total",
        "Connections ended before they became a request, by reason.",
        ["reason"],
        registry=registry,
    )


def _of_hydrations(registry: CollectorRegistry) -> Counter:
    return Counter(
        "doonce_hydrations_total",
        "Events whose whole object was asked for: it was read, the provider had none, or the reading is dead.",
        ["fate"],
        registry=registry,
    )


def _of_work(registry: CollectorRegistry) -> tuple[Gauge, Gauge, Gauge]:
    """What waits of each family."""
    return (
        Gauge(
            "doonce_work_waiting",
            "Work items due or waiting for their time, counted up to a bound.",
            ["family"],
            registry=registry,
        ),
        Gauge(
            "doonce_work_needing_later_release",
            "Work items that need the engine of a later release, counted up to a bound.",
            ["family"],
            registry=registry,
        ),
        Gauge(
            "doonce_work_oldest_due_seconds",
            "How long the oldest due work item has been due.",
            ["family"],
            registry=registry,
        ),
    )


def _of_the_database(registry: CollectorRegistry) -> tuple[Counter, Counter]:
    rollbacks = Counter(
        "doonce_database_rollbacks_total",
        "Proven rollbacks, run again.",
        ["operation", "fault"],
        registry=registry,
    )
    unknown_commits = Counter(
        "doonce_unknown_commits_total",
        "Commits whose result was not known and had to be settled.",
        ["operation"],
        registry=registry,
    )
    return rollbacks, unknown_commits


def _of_deliveries(registry: CollectorRegistry) -> tuple[Counter, Counter, Counter]:
    delivered = Counter(
        "doonce_deliveries_total",
        "Verified deliveries that are durable, by what became of them.",
        ["fate"],
        registry=registry,
    )
    turned_away = Counter(
        "doonce_deliveries_turned_away_total",
        "Deliveries that got no receipt, by reason.",
        ["reason"],
        registry=registry,
    )
    events = Counter(
        "doonce_events_total",
        "Events that deliveries told of: the family whose work they are first, nobody's by their binding, or known.",
        ["fate"],
        registry=registry,
    )
    return delivered, turned_away, events


def _of_links(registry: CollectorRegistry) -> Counter:
    return Counter(
        "doonce_created_links_total",
        "Links of accepted creates, by operation: made, kept as it was, or refused since another one stands.",
        ["operation", "fate"],
        registry=registry,
    )
