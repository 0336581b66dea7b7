"""Checks of a Prometheus: is everything scraped, once, and often enough for the rules?

What `prometheus_queries.FACTS` found is judged here. `CHECKS` at the end names the checks.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from cephqos_alerts.rules.settings import RuleSettings
from cephqos_base.prometheus import NO_JSON
from cephqos_base.terminal import first_names
from cephqos_doctor.finding import Check, Finding, quoted
from cephqos_doctor.prometheus_facts import (
    PROMETHEUS,
    Labels,
    PrometheusFacts,
    ScrapeTarget,
    scrape_interval_of,
)

_JOB: Final = re.compile(RuleSettings().job)
_LEAST_VERSION: Final = (2, 42)
# An interval that is counted from samples may be too long by 5 %.
_TOLERANCE: Final = 1.05
_DROP: Final = (
    "metric_relabel_configs:   # in the scrape job of cephqos-exporter\n"
    "  - {source_labels: [__name__], regex: 'ceph_.*', action: drop}"
)


def _our_targets(facts: PrometheusFacts) -> list[ScrapeTarget]:
    return [target for target in facts.targets if _JOB.fullmatch(target.job)]


def _reachable(facts: PrometheusFacts) -> Iterator[Finding]:
    if facts.failure:
        yield Finding(
            facts.url,
            f"no usable answer: {facts.failure}",
            f"curl -fsS {quoted(facts.url)}/api/v1/status/buildinfo{_login_hint(facts.failure)}",
        )


def _login_hint(failure: str) -> str:
    """What most often helps if a Prometheus runs but refuses us."""
    if "HTTP 401" in failure or "HTTP 403" in failure or NO_JSON in failure:
        return (
            "   # it asks for a login: --header FILE, with a line `Authorization: ...`"
            " (Mimir: `X-Scope-OrgID: TENANT`)"
        )
    if "certificate" in failure.lower():
        return "   # a CA of your own: SSL_CERT_FILE=CA.pem cephqos doctor prometheus ..."
    return ""


def _old_version(facts: PrometheusFacts) -> Iterator[Finding]:
    numbers = re.match(r"(\d+)\.(\d+)", facts.version)
    if numbers and (int(numbers[1]), int(numbers[2])) < _LEAST_VERSION:
        yield Finding(
            "Prometheus",
            f"version {facts.version} is older than 2.42, the oldest that the rules are tried with",
            "apt install prometheus   # Debian 12 has 2.42; or what your installation came from",
        )


def _other_engine(facts: PrometheusFacts) -> str:
    return "" if facts.engine == PROMETHEUS else f"this is {facts.engine}"


def _no_exporter_scraped(facts: PrometheusFacts) -> Iterator[Finding]:
    if facts.failure or _our_targets(facts):
        return
    jobs = sorted({labels.get("job", "") for labels in facts.exporters})
    if not jobs:
        yield Finding(
            "Prometheus",
            "it scrapes no cephqos-exporter",
            "scrape_configs:\n  - job_name: cephqos\n"
            "    static_configs: [{targets: ['HOST:10130']}]",
        )


def _other_job_names(facts: PrometheusFacts) -> Iterator[Finding]:
    for job in sorted({labels.get("job", "") for labels in facts.exporters}):
        if not _JOB.fullmatch(job):
            yield Finding(
                f"job {job}",
                f"it scrapes cephqos-exporter, but rules look for jobs named {_JOB.pattern}",
                f"cephqos rules build --job {quoted(re.escape(job))} --out DIR"
                "   # or rename the job to cephqos",
            )


def _down(facts: PrometheusFacts) -> Iterator[Finding]:
    for target in _our_targets(facts):
        if not target.up:
            yield Finding(
                target.instance,
                f"Prometheus gets no metrics from it: {target.error}",
                f"curl -fsS {quoted(target.url)}   # from Prometheus' host"
                if target.url
                else "curl -fsS URL   # from Prometheus' host; its page Targets has the URL",
            )


def _scraped_too_rarely(facts: PrometheusFacts) -> Iterator[Finding]:
    made_for = scrape_interval_of(facts.rules)
    slowest: dict[str, float] = {}
    for target in _our_targets(facts):
        slowest[target.job] = max(slowest.get(target.job, 0.0), target.interval)
    for job, interval in slowest.items():
        if made_for and interval > made_for * _TOLERANCE:
            yield Finding(
                f"job {job}",
                f"it is scraped every {interval:g} s, and the rules are made for {made_for:g} s:"
                " rates and holds miss samples",
                f"cephqos rules build --scrape-interval {interval:g} --out DIR"
                f"   # or scrape_interval: {made_for:g}s",
            )


def _counted_twice(facts: PrometheusFacts) -> Iterator[Finding]:
    if facts.doubled_counters:
        yield Finding(
            _first_names(facts.doubled_counters),
            "Ceph's own counters (ceph_…) come from two jobs: sums over them count double",
            _DROP,
        )
    if facts.replicas:
        yield Finding(
            _first_names(facts.replicas),
            "samples of one target are here more than once: the replicas of a pair of Prometheus"
            " servers are not merged, and sums count double",
            "remote_write: [{write_relabel_configs: [{regex: replica, action: labeldrop}]}]"
            "   # VictoriaMetrics, with -dedup.minScrapeInterval. Thanos:"
            " thanos query --query.replica-label=replica. The operator's label: prometheus_replica",
        )
    if facts.doubled_osds:
        yield Finding(
            _first_names(facts.doubled_osds),
            "more than one target reports the same OSD",
            f"promtool query instant {quoted(facts.url)}"
            " 'count by (job, instance, ceph_daemon) (cephqos_daemon_up)'"
            "   # shows the targets: remove one of them",
        )
    if facts.doubled_clusters:
        yield Finding(
            _first_names(facts.doubled_clusters, "cluster"),
            "more than one exporter runs with the role cluster",
            "systemctl disable --now cephqos-cluster   # on all hosts but one",
        )


def _first_names(series: Iterable[Labels], label: str = "ceph_daemon") -> str:
    """The values of a label, at most three: `osd.1, osd.2, osd.3 and 5 more`."""
    return first_names(sorted({labels.get(label, "") for labels in series}), most=3)


def _label_hidden(facts: PrometheusFacts) -> Iterator[Finding]:
    for labels in facts.label_taken:
        yield Finding(
            f"job {labels.get('job', '')}",
            "a label `cluster` or `ceph_daemon` of the scrape configuration hides the exporter's"
            " own",
            "relabel_configs:   # in the scrape job of cephqos-exporter\n"
            "  - {regex: cluster|ceph_daemon, action: labeldrop}",
        )


def _not_understood(facts: PrometheusFacts) -> Iterator[Finding]:
    for labels in facts.not_understood:
        yield Finding(
            labels.get("ceph_daemon") or labels.get("instance", ""),
            f"the collector {labels.get('collector', '')} does not understand its"
            f" replies ({labels.get('what', '')}), so metrics are absent: this Ceph is probably"
            " newer than this cephqos",
            "journalctl -u '*cephqos-*' | grep 'does not understand'"
            "   # says what it was: install a newer cephqos, or report it",
        )


def _recorder_lost(facts: PrometheusFacts) -> Iterator[Finding]:
    for labels in facts.recorder_lost:
        instance = labels.get("instance", "")
        if labels.get("reason") == "full":
            yield Finding(
                instance,
                "its recorded pieces fill their place, so the recorder keeps no more",
                f"cephqos record ls --exporter {quoted(f'http://{instance}')}"
                "   # then remove old folders below --recorder.path",
            )
        elif labels.get("reason") == "forward":
            yield Finding(
                instance,
                "other exporters did not keep what it forwarded",
                "journalctl -u '*cephqos-*' | grep 'not kept by'   # says which, and why",
            )
        else:
            yield Finding(
                instance,
                "the recorder lost pages: its disk is full, slow or not its own",
                "journalctl -u '*cephqos-*' | grep 'nothing is recorded'   # says why",
            )


def _no_receiver(facts: PrometheusFacts) -> Iterator[Finding]:
    if facts.recorders and facts.recorders_told is False:
        yield Finding(
            _first_names(facts.recorders, "instance"),
            "it records, but Alertmanager has no receiver with its address: no alert keeps a piece",
            "receivers:   # docs/install/alertmanager.md\n"
            "  - name: critical\n"
            "    webhook_configs: [{url: 'http://HOST:10130/-/record', max_alerts: 10}]",
        )


def _receivers_unknown(facts: PrometheusFacts) -> str:
    unknown = facts.recorders and facts.recorders_told is None
    return "Alertmanager does not say which receivers it has" if unknown else ""


def _buckets_dropped(facts: PrometheusFacts) -> Iterator[Finding]:
    for job in facts.converting:
        yield Finding(
            f"job {job}",
            "converts classic histograms, so the series ..._bucket are dropped, from which SLOs"
            " and latency dashboards are made",
            "always_scrape_classic_histograms: true   # in that scrape job, or as"
            " scrapeClassicHistograms of the PodMonitor",
        )


# Says why there is no answer. Without one, all other checks of the server are left out.
REACHABLE: Final = Check("prometheus-reachable", _reachable)
CHECKS: Final = (
    Check("prometheus-version", _old_version, _other_engine),
    Check("exporters-scraped", _no_exporter_scraped),
    Check("job-names", _other_job_names),
    Check("targets-up", _down),
    Check("scrape-interval", _scraped_too_rarely),
    Check("nothing-twice", _counted_twice),
    Check("label-cluster-free", _label_hidden),
    Check("buckets-kept", _buckets_dropped),
    Check("replies-understood", _not_understood),
    Check("recorder-keeps", _recorder_lost),
    Check("recorder-told", _no_receiver, _receivers_unknown),
)
