"""What is measured is documented under the name, kind and labels that a scrape has, and every observer counts."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from prometheus_client.metrics import MetricWrapperBase

from doonce.app.metrics import Metrics

PAGE = Path(__file__).parents[3] / "docs" / "operating.md"
ROW = re.compile(r"^\| `(doonce_\w+)` \| (gauge|counter|histogram) \|([^|]*)\|", re.MULTILINE)


def measured() -> set[tuple[str, str, tuple[str, ...]]]:
    """Each metric of the registry."""
    found = set()
    for collector in set(Metrics().registry._collector_to_names):
        assert isinstance(collector, MetricWrapperBase)
        name = f"{collector._name}_total" if collector._type == "counter" else collector._name
        found.add((name, collector._type, tuple(collector._labelnames)))
    return found


def test_the_page_has_every_metric_with_its_kind_and_labels() -> None:
    documented = {
        (name, kind, tuple(re.findall(r"`(\w+)`", labels)))
        for name, kind, labels in ROW.findall(PAGE.read_text())
    }
    assert documented == measured()


REPORTS: dict[str, tuple[Callable[[Metrics], None], float]] = {
    'doonce_work_claimed_total{family="effect"}': (lambda seen: seen.claimed("effect", 3), 3),
    'doonce_effect_outcomes_total{operation="o",outcome="ACCEPTED"}': (
        lambda seen: seen.ended("o", "ACCEPTED"),
        1,
    ),
    'doonce_created_links_total{fate="made",operation="o"}': (lambda seen: seen.linked("o", "made"), 1),
    'doonce_stale_refusals_total{family="effect",step="renew"}': (
        lambda seen: seen.stale("effect", "renew"),
        1,
    ),
    'doonce_marks_refused_total{fence="lease"}': (lambda seen: seen.mark_refused("lease"), 1),
    'doonce_database_rollbacks_total{fault="Contended",operation="mark"}': (
        lambda seen: seen.rolled_back("mark", "Contended"),
        1,
    ),
    'doonce_unknown_commits_total{operation="mark"}': (lambda seen: seen.commit_unknown("mark"), 1),
    'doonce_flush_rows_sum{operation="mark"}': (lambda seen: seen.flushed("mark", 7), 7),
    'doonce_flush_rows_bucket{le="8.0",operation="mark"}': (lambda seen: seen.flushed("mark", 7), 1),
    'doonce_call_seconds_count{operation="o"}': (lambda seen: seen.call_took("o", 0.2), 1),
    'doonce_deliveries_total{fate="duplicate"}': (lambda seen: seen.delivered("duplicate"), 1),
    'doonce_deliveries_turned_away_total{reason="shed"}': (lambda seen: seen.turned_away("shed"), 1),
    'doonce_events_total{fate="nobody"}': (lambda seen: seen.event("nobody"), 1),
    'doonce_hydrations_total{fate="missing"}': (lambda seen: seen.hydrated("missing"), 1),
    'doonce_http_refused_total{reason="malformed"}': (lambda seen: seen.refused("malformed"), 1),
}


@pytest.mark.parametrize("sample", REPORTS)
def test_a_report_is_counted_where_an_operator_looks(sample: str) -> None:
    report, value = REPORTS[sample]
    metrics = Metrics()
    report(metrics)
    assert f"{sample} {float(value)}" in metrics.text().decode().splitlines()
