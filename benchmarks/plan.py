"""What is measured, how much of it, and what becomes of the values: the figures and what they should reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks.case import Measurement, Options, Values

IN_FLIGHT = 64
AT_ONCE = 50
RATE = ("per_s", "cpu_us")
RECEIVED = (*RATE, "bare_per_s", "bare_cpu_us", "tax", "half_p99_ms")
Medians = Mapping[str, Values]


@dataclass(frozen=True, slots=True)
class Size:
    """How much of everything. Peers get fewer jobs where they are slower, so that each takes a few seconds."""

    rounds: int
    noop: int
    noop_slow: int
    effects: int
    calls: int
    calls_slow: int
    bare: int
    pending: int
    looks: int
    idle: int
    deliveries: int
    crowd: int
    singles: int
    long: int
    warm: int


FULL = Size(
    rounds=3, noop=20_000, noop_slow=3_000, effects=6_000, calls=6_000, calls_slow=1_500, bare=12_000,
    pending=1_000_000, looks=150, idle=300, deliveries=10_000,
    crowd=10_000_000, singles=200, long=1_000_000, warm=50_000,
)  # fmt: skip
QUICK = Size(
    rounds=1, noop=5_000, noop_slow=500, effects=1_000, calls=1_000, calls_slow=300, bare=3_000,
    pending=50_000, looks=40, idle=60, deliveries=2_500,
    crowd=100_000, singles=40, long=40_000, warm=5_000,
)  # fmt: skip


def measurements(size: Size) -> list[Measurement]:
    """One round, in order: what is compared stands close together."""
    return [
        Measurement("noop", "doonce_noop", (*RATE, "rss_mb"), {"jobs": size.noop, "concurrency": AT_ONCE}),
        Measurement("noop_sqlite", "doonce_noop", RATE, {"jobs": size.noop, "concurrency": AT_ONCE}, "sqlite"),
        Measurement("noop_mariadb", "doonce_noop", RATE, {"jobs": size.noop, "concurrency": AT_ONCE}, "mariadb"),
        Measurement(
            "workers", "doonce_workers", ("one_per_s", "several_per_s"),
            {"jobs": size.noop, "concurrency": AT_ONCE, "workers": [1, 2]}, databases=2,
        ),
        Measurement("noop_pgqueuer", "peer_pgqueuer", RATE, {"jobs": size.noop, "concurrency": AT_ONCE}),
        Measurement(
            "noop_procrastinate", "peer_procrastinate", RATE, {"jobs": size.noop_slow, "concurrency": AT_ONCE}
        ),
        Measurement(
            "bare", "doonce_bare", RATE, {"jobs": size.bare, "concurrency": IN_FLIGHT}, "", simulator=True
        ),
        Measurement(
            "effects", "doonce_effects", (*RATE, "rss_mb"),
            {"jobs": size.effects, "concurrency": IN_FLIGHT}, simulator=True,
        ),
        Measurement(
            "http_pgqueuer", "peer_pgqueuer", RATE,
            {"jobs": size.calls, "concurrency": IN_FLIGHT}, simulator=True,
        ),
        Measurement(
            "http_procrastinate", "peer_procrastinate", RATE,
            {"jobs": size.calls_slow, "concurrency": IN_FLIGHT}, simulator=True,
        ),
        Measurement(
            "http_dbos", "peer_dbos", RATE,
            {"jobs": size.calls_slow, "concurrency": IN_FLIGHT}, simulator=True,
        ),
        Measurement(
            "effects_sqlite", "doonce_effects", RATE,
            {"jobs": size.effects, "concurrency": IN_FLIGHT}, "sqlite", simulator=True,
        ),
        Measurement("ingress", "doonce_ingress", RECEIVED, _received(size), "sqlite"),
        Measurement("ingress_postgresql", "doonce_ingress", RECEIVED, _received(size)),
        Measurement("idle", "doonce_idle", ("p50_ms", "p99_ms"), {"jobs": size.idle}, simulator=True),
    ]  # fmt: skip


def _received(size: Size) -> Options:
    return {"jobs": size.deliveries, "concurrency": IN_FLIGHT}


def once(size: Size) -> list[Measurement]:
    """Once a run, since filling or working takes long. Backlogs take their own median over three series."""
    return [
        _backlog("backlog", size, size.pending, crowded=False),
        _fairness("fairness", size, 2),
        _fairness("fairness_among_many", size, 40),
        Measurement(
            "memory", "doonce_memory", ("early_mb", "late_mb", "growth", "per_s"),
            {"jobs": size.long, "warm": size.warm, "concurrency": AT_ONCE}, seconds_max=900,
        ),
        _backlog("claim_backlog_10m", size, size.crowd, crowded=True),
    ]  # fmt: skip


def _backlog(name: str, size: Size, pending: int, *, crowded: bool) -> Measurement:
    options = {
        "items": [1_000, pending], "rows": IN_FLIGHT, "looks": size.looks, "series": size.rounds, "crowded": crowded,
    }  # fmt: skip
    return Measurement(
        name, "doonce_backlog", ("few_us", "many_us", "ratio"), options, databases=2, seconds_max=1_800
    )


def _fairness(name: str, size: Size, organizations: int) -> Measurement:
    options = {
        "pending": size.pending, "organizations": organizations, "looks": size.singles, "concurrency": AT_ONCE,
    }  # fmt: skip
    return Measurement(name, "doonce_fairness", ("claims_max", "claims_mean"), options)


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the result. `least` or `most` is what it should reach; neither: for the record."""

    name: str
    meaning: str
    value: Callable[[Medians], float]
    least: float | None = None
    most: float | None = None

    def reached(self, value: float) -> bool | None:
        """Whether the value is good enough; None when nothing is asked of it."""
        if self.least is not None:
            return value >= self.least
        return value <= self.most if self.most is not None else None

    def target(self) -> str:
        """What is asked of it."""
        if self.least is not None:
            return f"≥ {self.least:g}"
        return f"≤ {self.most:g}" if self.most is not None else ""


def _of(name: str, value: str) -> Callable[[Medians], float]:
    return lambda medians: medians[name][value]


def _ratio(over: tuple[str, str], under: tuple[str, str]) -> Callable[[Medians], float]:
    return lambda medians: medians[over[0]][over[1]] / medians[under[0]][under[1]]


WHOLE = ("effects", "per_s")

FIGURES = (
    Figure("noop_per_s", "work items that do nothing, a second", _of("noop", "per_s")),
    Figure("noop_per_s_sqlite", "the same on SQLite", _of("noop_sqlite", "per_s")),
    Figure("noop_per_s_mariadb", "the same on MariaDB", _of("noop_mariadb", "per_s")),
    Figure(
        "two_workers_vs_one", "the same of two processes ÷ of one",
        _ratio(("workers", "several_per_s"), ("workers", "one_per_s")),
    ),
    Figure("noop_vs_pgqueuer", "÷ pgqueuer's", _ratio(("noop", "per_s"), ("noop_pgqueuer", "per_s")), least=1.0),
    Figure(
        "noop_vs_procrastinate", "÷ procrastinate's",
        _ratio(("noop", "per_s"), ("noop_procrastinate", "per_s")), least=15,
    ),
    Figure("effects_per_s", "whole effects a second, completion item included", _of(*WHOLE)),
    Figure("effects_per_s_sqlite", "whole effects a second on SQLite", _of("effects_sqlite", "per_s")),
    Figure("bare_per_s", "the client alone, requests a second", _of("bare", "per_s")),
    Figure("effect_tax", "the client alone ÷ whole effects", _ratio(("bare", "per_s"), WHOLE), most=3),
    Figure(
        "effects_vs_procrastinate_http", "÷ the call from a procrastinate task",
        _ratio(WHOLE, ("http_procrastinate", "per_s")), least=4,
    ),
    Figure("effects_vs_dbos_http", "÷ the call from a DBOS step", _ratio(WHOLE, ("http_dbos", "per_s")), least=4),
    Figure(
        "effects_vs_pgqueuer_http", "÷ the call from a pgqueuer job",
        _ratio(WHOLE, ("http_pgqueuer", "per_s")), least=0.7,
    ),
    Figure("claim_us", "a claim of 64 with a thousand pending, µs", _of("backlog", "few_us")),
    Figure("claim_backlog", "claim with a million pending ÷ with a thousand", _of("backlog", "ratio"), most=1.3),
    Figure(
        "claim_backlog_10m", "the same with ten million of all kinds, as many ended", _of("claim_backlog_10m", "ratio"),
        most=1.3,
    ),
    Figure(
        "fairness_delay_claims", "claims until a single item beside a million is taken, at most",
        _of("fairness", "claims_max"),
    ),
    Figure(
        "fairness_delay_claims_among_40", "the same among forty organizations",
        _of("fairness_among_many", "claims_max"),
    ),
    Figure("idle_p50_ms", "accept → request arrives, median, ms", _of("idle", "p50_ms"), most=8),
    Figure("idle_p99_ms", "the same, 99th percentile, ms", _of("idle", "p99_ms"), most=20),
    Figure("ingress_per_s", "deliveries a second, each durable before its answer", _of("ingress", "per_s")),
    Figure("ingress_tax", "the same server answering without durability ÷ that", _of("ingress", "tax"), most=1.6),
    Figure(
        "ingress_cpu_tax", "the same in processor time of the service",
        _ratio(("ingress", "cpu_us"), ("ingress", "bare_cpu_us")),
    ),
    Figure("ingress_p99_ms", "at half that load: due → answered, 99th percentile, ms", _of("ingress", "half_p99_ms")),
    Figure("ingress_per_s_postgresql", "the same on PostgreSQL", _of("ingress_postgresql", "per_s")),
    Figure("ingress_tax_postgresql", "the same on PostgreSQL", _of("ingress_postgresql", "tax")),
    Figure("ingress_p99_ms_postgresql", "the same on PostgreSQL", _of("ingress_postgresql", "half_p99_ms")),
    Figure("rss_growth", "a worker's memory after a million items ÷ warmed up", _of("memory", "growth"), most=1.05),
    Figure("worker_rss_mb", "memory of the effects' worker process, MiB", _of("effects", "rss_mb"), most=80),
)  # fmt: skip
