"""Sources of the rules: what is filled in, and what is refused with its file and line."""

from pathlib import Path

import pytest

from cephqos_alerts.output.build import FILES, LOGS, SHARED
from cephqos_alerts.rules.names import SOURCES
from cephqos_alerts.rules.rule import Alert, RecordedSeries, RuleGroup, without_comments
from cephqos_alerts.rules.source import insert, one_line, read_groups
from cephqos_base import yamlfile
from cephqos_base.errors import ConfigError
from cephqos_base.series import TENANT

_GROUP = """
expressions:
  busy: osd:cephqos_device_depth:rate > 1
  both: |-
    # Two lines.
    @busy@ and on (cluster, ceph_daemon)
      osd:cephqos_media:info{media="hdd"}
groups:
- name: g
  rules:
  - record: osd:cephqos_delivered_ops:rate
    labels: {at: x}
    expr: |-
      0 * (
        @both@
      ) + 1
"""
_ALERT = """
groups:
- name: g
  slow: yes
  rules:
  - alert: CephQosOsdDown
    about: [osd]
    expr: up == 0
    for: 5m
    urgency: now
    but: if it is drained
    likely: "its host@mostly@"
    first: ceph osd tree
    summary: "@count@ OSD@s@"
    description: >-
      A text
      of two lines.
"""


def groups(text: str, folder: Path) -> list[RuleGroup]:
    file = folder / "own.yml"
    file.write_text(text, encoding="utf-8")
    return read_groups(file, SHARED)


def test_a_named_expression_is_indented_as_the_line_that_it_is_in(tmp_path: Path) -> None:
    ((rule,),) = (group.rules for group in groups(_GROUP, tmp_path))
    assert isinstance(rule, RecordedSeries)
    assert (rule.record, rule.labels) == ("osd:cephqos_delivered_ops:rate", {"at": "x"})
    assert rule.expr.splitlines() == [
        "0 * (",
        "  # Two lines.",
        "  osd:cephqos_device_depth:rate > 1 and on (cluster, ceph_daemon)",
        '    osd:cephqos_media:info{media="hdd"}',
        ") + 1",
    ]


def test_an_alert_is_read_with_the_texts_that_it_names(tmp_path: Path) -> None:
    (group,) = groups(_ALERT, tmp_path)
    (rule,) = group.rules
    assert isinstance(rule, Alert)
    assert (group.slow, rule.severity, rule.hold, rule.about) == (True, "critical", 300, ["osd"])
    assert rule.urgency.can_wait == "no, if it is drained"
    assert rule.description == "A text of two lines."
    assert rule.summary == '{{ $value | printf "%.0f" }} OSD{{ if ne $value 1.0 }}s{{ end }}'
    assert TENANT in rule.likely


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        ("device_depth:rate > 1", "device_deph:rate > 1", r"own.yml:13: .*osd:cephqos_device_deph"),
        ("> 1", "> @nothing@", r"own.yml:13: .*nothing"),
        ("> 1", "> @rate in word@", r"own.yml:13: .*@rate in word@"),
        ("rules:", "rulez:", r"own.yml:11: .*rulez"),
        ("record:", "recorded:", r"own.yml:11: .*recorded"),
    ],
)
def test_what_does_not_exist_is_refused_with_its_line(
    right: str, wrong: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=said):
        groups(_GROUP.replace(right, wrong), tmp_path)


def test_a_severity_is_not_written_but_follows(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"own.yml:10: .*one of now, not_tonight"):
        groups(_ALERT.replace("urgency: now", "urgency: critical"), tmp_path)


def test_comments_end_with_their_line_and_strings_keep_their_signs() -> None:
    expr = 'a{b="#1"} # why\n  # more\n  + (\n  c\n)'
    assert without_comments(expr) == 'a{b="#1"}\n\n  + (\n  c\n)'
    assert one_line(expr) == 'a{b="#1"} + (c)'


def test_names_that_nothing_stands_for_are_left_to_the_settings() -> None:
    assert insert("  @a@ > @part@", {"a": "b\nc"}) == "  b\n  c > @part@"


@pytest.mark.parametrize("file", sorted(SOURCES.rglob("*.yml")), ids=lambda file: file.stem)
def test_every_named_expression_is_used(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    top = yamlfile.parse(text, file.name).entries()
    names = list(top["expressions"].entries()) if "expressions" in top else []
    assert [name for name in names if f"@{name}@" not in text] == []


def test_every_source_is_read() -> None:
    read = {file.stem for file in (*SOURCES.glob("*.yml"), *SOURCES.glob("recording/*.yml"))}
    names = [group.name for groups in FILES.values() for group in groups]
    assert len(names) == len(set(names))
    found = {
        file.stem
        for file in (*SOURCES.glob("*.yml"), *SOURCES.glob("recording/*.yml"))
        if any(
            f"name: {name}\n" in file.read_text(encoding="utf-8") for name in (*names, LOGS.name)
        )
    }
    assert found == read
