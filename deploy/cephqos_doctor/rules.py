"""Checks of a Prometheus: does it evaluate our rules, all of them, of this version, in time?

A rule is known by its group and name. Several may share both, so their expressions are compared as
a sorted list.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from cephqos_base.series import ExporterSeries
from cephqos_base.terminal import first_names
from cephqos_base.version import __version__
from cephqos_doctor.finding import Check, Finding, quoted
from cephqos_doctor.prometheus_facts import (
    PROMETHEUS,
    LoadedRule,
    PrometheusFacts,
    scrape_interval_of,
)

_SHOWN: Final = 5  # names in a finding

RuleKey = tuple[str, str]  # group and name
_OTHER_RULER: Final = (
    "cephqos rules build --out DIR   # and let vmalert, Thanos' or Mimir's ruler evaluate them\n"
    "victoria-metrics -vmalert.proxyURL=http://VMALERT:8880   # so that its rules are seen here"
)


def _build_rules(facts: PrometheusFacts) -> str:
    """The command that makes the rules again, for the same scrape interval."""
    interval = scrape_interval_of(facts.rules)
    option = f"--scrape-interval {interval:g} " if interval not in (0.0, 15.0) else ""
    return f"cephqos rules build {option}--out /etc/prometheus/rules && systemctl reload prometheus"


def _expressions(rules: Iterable[LoadedRule]) -> dict[RuleKey, list[str]]:
    by_rule: dict[RuleKey, list[str]] = {}
    for rule in rules:
        by_rule.setdefault((rule.group, rule.name), []).append(rule.expr)
    return {key: sorted(expressions) for key, expressions in by_rule.items()}


def _files(rules: Iterable[LoadedRule]) -> dict[str, list[str]]:
    """The files of each group. Prometheus evaluates a group once for each of them."""
    by_group: dict[str, set[str]] = {}
    for rule in rules:
        by_group.setdefault(rule.group, set()).add(rule.file)
    return {group: sorted(files) for group, files in by_group.items()}


def _loaded_twice(facts: PrometheusFacts) -> Iterator[Finding]:
    copies: dict[tuple[str, ...], list[str]] = {}
    for group, files in _files(facts.rules).items():
        if len(files) > 1:
            copies.setdefault(tuple(files), []).append(group)
    for places, groups in copies.items():
        yield Finding(
            "rules",
            f"{len(groups)} groups are loaded from {len(places)} files and evaluated as often:"
            f" {', '.join(sorted(groups)[:_SHOWN])} from {', '.join(places)}",
            f"ls -l {' '.join(map(quoted, places))}"
            "   # keep the newest, then: systemctl reload prometheus\n"
            "helm upgrade RELEASE deploy/helm/cephqos --reset-then-reuse-values --set"
            " rules.enabled=false   # Rook: all releases of the chart but one",
        )


def _loaded_and_expected(facts: PrometheusFacts) -> tuple[dict[RuleKey, list[str]], ...]:
    """Expressions by rule: those that are loaded, and those that should be loaded."""
    # One copy of a group that is loaded twice: the check `rules-loaded-once` finds the others.
    first_file = {group: files[0] for group, files in _files(facts.rules).items()}
    loaded = (rule for rule in facts.rules if rule.file == first_file[rule.group])
    return _expressions(loaded), _expressions(facts.expected)


def _finding(facts: PrometheusFacts, problem: str, found: set[RuleKey]) -> Finding:
    names = first_names(sorted({name for _, name in found}), _SHOWN)
    return Finding(
        "rules",
        f"{len(found)} rules {problem}: {names}",
        f"{_build_rules(facts)}   # rules with options of your own: doctor --rules DIR",
    )


def _missing_or_unknown(facts: PrometheusFacts) -> Iterator[Finding]:
    if facts.failure:
        return
    if not facts.rules:
        mend = _build_rules(facts) if facts.engine == PROMETHEUS else _OTHER_RULER
        yield Finding(facts.engine, "the rules of cephqos are not loaded", mend)
        return
    loaded, expected = _loaded_and_expected(facts)
    if missing := expected.keys() - loaded.keys():
        yield _finding(facts, "are missing", set(missing))
    if unknown := loaded.keys() - expected.keys():
        yield _finding(facts, "are not known to this version", set(unknown))


def _evaluated_elsewhere(facts: PrometheusFacts) -> str:
    """Our series are there, so something else evaluates the rules. Its rules are not seen here."""
    if facts.rules or not facts.recorded:
        return ""
    return (
        "rules are evaluated, but not by what answers here; VictoriaMetrics tells of those of"
        " vmalert with -vmalert.proxyURL"
    )


def _changed(facts: PrometheusFacts) -> Iterator[Finding]:
    loaded, expected = _loaded_and_expected(facts)
    if differ := {key for key in loaded.keys() & expected.keys() if loaded[key] != expected[key]}:
        yield _finding(facts, "differ from this version's", differ)


def _not_comparable(facts: PrometheusFacts) -> str:
    return "" if facts.prints else f"{facts.engine} does not give the text of rules in one form"


def _failing(facts: PrometheusFacts) -> Iterator[Finding]:
    for rule in facts.rules:
        if rule.error:
            yield Finding(f"rule {rule.name}", f"it fails: {rule.error}", _build_rules(facts))


def _late(facts: PrometheusFacts) -> Iterator[Finding]:
    groups = {rule.group: rule for rule in facts.rules}
    for group, rule in groups.items():
        if rule.seconds > rule.interval > 0:
            yield Finding(
                f"group {group}",
                f"its evaluation takes {rule.seconds:.1f} s and is due every {rule.interval:g} s",
                f"cephqos rules build --scrape-interval {2 * rule.interval:g} --out DIR"
                "   # or more CPU for Prometheus",
            )


def _no_alertmanager(facts: PrometheusFacts) -> Iterator[Finding]:
    if facts.rules and not facts.alertmanagers and not facts.failure:
        yield Finding(
            "Prometheus",
            "it sends alerts to no Alertmanager: they fire, and are not sent",
            "alerting:\n  alertmanagers:\n    - static_configs: [{targets: ['HOST:9093']}]",
        )


def _alertmanagers_unknown(facts: PrometheusFacts) -> str:
    if facts.failure or facts.alertmanagers is not None:
        return ""
    return f"{facts.engine} does not tell where alerts go"


def _other_exporter_versions(facts: PrometheusFacts) -> Iterator[Finding]:
    for labels in facts.exporters:
        version = labels.get("version", "")
        if version != __version__:
            yield Finding(
                labels.get("instance", ExporterSeries.BUILD_INFO),
                f"the exporter is of version {version}; this command and its rules are of"
                f" {__version__}",
                "apt install cephqos-exporter   # the same version on all hosts;"
                " cephadm: ceph orch apply; Rook: helm upgrade",
            )


CHECKS: Final = (
    Check("rules-complete", _missing_or_unknown, _evaluated_elsewhere),
    Check("rules-of-this-version", _changed, _not_comparable),
    Check("rules-loaded-once", _loaded_twice),
    Check("rules-work", _failing),
    Check("rules-in-time", _late),
    Check("alerts-sent", _no_alertmanager, _alertmanagers_unknown),
    Check("exporters-of-this-version", _other_exporter_versions),
)
