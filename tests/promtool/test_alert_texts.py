"""Every alert as a person gets it: where, since when, why, can it wait, what to type first."""

import json
import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from tests.findings import EVERY_FINDING
from tests.release_tools import tool

from cephqos_alerts.rules.findings import OsdFinding
from cephqos_base.recorded import PerClass, PerClusterClass, PerOsd

_FILES: Final = (*sorted(Path("alerts/rules").glob("*.yml")), Path("alerts/loki/fake/logs.yml"))
_ALERTS: Final[list[dict[str, Any]]] = [
    rule
    for file in _FILES
    for group in yaml.safe_load(file.read_text(encoding="utf-8"))["groups"]
    for rule in group["rules"]
    if "alert" in rule
]
_SENT: Final = [rule for rule in _ALERTS if rule["labels"]["severity"] != "none"]
_NO_ANSWER: Final = "CephQosDaemonNotAnswering"
# All that any alert is labelled with. The OSD is scraped at a host whose name is no label.
_LABELS: Final = {
    "cluster": "c1",
    "ceph_daemon": "osd.3",
    "class": "client",
    "pool": "rbd",
    "pg": "1.2f",
    "instance": "ceph1:10130",
    "job": "cephqos",
    "collector": "disks",
    "what": "value",
    "level": "deep",
    "group": "tp_osd_tp",
    "media": "ssd",
    "op": "commit",
    "device": "eth0",
    "at": "device",
    "option": "osd_max_backfills",
    "setting": "noout",
    "check": "MDS_TRIM",
}
_KNOWN: Final = {"cause": "device", "by": "osd.4", "host": "ceph3"}
# `unknown` is the cause for which there is no evidence.
_NOT_KNOWN: Final = {"cause": "unknown"}


def _of_finding(finding: OsdFinding) -> dict[str, str]:
    told = {**_LABELS, **_KNOWN}
    return {"cluster": "c1", **{it: told[it] for it in finding.by}, **finding.labels}


def _clients_of(osd: int) -> str:
    return f'cluster="c1",ceph_daemon="osd.{osd}",class="client"'


def _violated(osd: int, cause: str) -> Iterator[str]:
    yield f"{PerClass.MAIN_CAUSE}{{{_clients_of(osd)},{cause}}}"
    yield f"{PerClass.VIOLATED_LASTING}{{{_clients_of(osd)}}}"


def _lasting(osd: int, *causes: str) -> Iterator[str]:
    for cause in causes:
        yield f'{PerClass.LASTING_EVIDENCE}{{{_clients_of(osd)},cause="{cause}"}}'


_SHORT: Final = (3, 5, 8)  # one for each alert about many OSDs
_LOOKED_UP: Final = (
    *(
        f'{PerOsd.INSTANCE}{{cluster="c1",ceph_daemon="osd.{it}",instance="ceph{it}:10130"}}'
        for it in (4, *_SHORT)
    ),
    *(f"{PerClass.SHORTFALL_OPS}{{{_clients_of(it)}}}" for it in _SHORT),
    *_violated(3, 'cause="device",by="osd.4"'),
    *_violated(7, 'cause="device",by="osd.1"'),
    *_violated(9, 'cause="cpu"'),
    *_lasting(3, "device", "cpu", "unknown"),
    *_lasting(9, "limit"),
    *_violated(5, 'cause="capacity"'),
    *_violated(8, 'cause="replica_writes",by="immediate"'),
    f"{PerClass.VIOLATED_SECONDS}{{{_clients_of(8)}}}",
    f'{PerClusterClass.MAIN_CAUSE}{{cluster="c1",class="client",cause="cpu",by="osd.4"}}',
    *(
        f'{PerOsd.FINDING}{{ceph_daemon="osd.3",finding="{it.name.removeprefix("CephQos")}",'
        + ",".join(f'{key}="{value}"' for key, value in _of_finding(it).items())
        + "}"
        for it in EVERY_FINDING
    ),
)
_GOT: Final = re.compile(r'([a-z]+)="((?:[^"\\]|\\.)*)"')
# Where a word is missing, or is none.
_HOLES: Final = re.compile(
    r"unknown|no value|error expanding|%!|  | [.,:;)]|\bon[:.,;)]|\bby[:.,;)]|\(\)|\.\.|: \."
)


def _told(labels: Mapping[str, str], rule: Mapping[str, Any]) -> str:
    """The labels of what the alert finds: an alert that counts OSDs names none."""
    own = {key: value for key, value in labels.items() if key not in rule["labels"]}
    if "cephqos_finding" in rule["expr"]:
        own.pop("ceph_daemon")
    return ",".join(f"{key}={_quoted(value)}" for key, value in own.items())


def _quoted(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


# How Go shows what JSON writes otherwise.
_GO_ONLY: Final = re.compile(r"\\\\|\\x([0-9a-f]{2})|\\([av])")


def _as_sent(shown: str) -> str:
    def in_json(it: re.Match[str]) -> str:
        if it[1]:
            return f"\\u00{it[1]}"
        return {"a": "\\u0007", "v": "\\u000b"}.get(it[2], it[0])

    return str(json.loads(f'"{_GO_ONLY.sub(in_json, shown)}"'))


def _shown(
    labels: Mapping[str, str], others: tuple[str, ...], when: str, at: Path, value: int = 3
) -> list[str]:
    """The texts of all alerts, in their order, by one run of promtool."""
    rules: list[dict[str, Any]] = []
    series = dict.fromkeys(others, 1)
    series |= {name: 2400 for name in others if name.startswith(PerClass.VIOLATED_SECONDS)}
    # That of a single OSD, since two hours before.
    series[f'ALERTS_FOR_STATE{{alertname="{_NO_ANSWER}",cluster="c1",ceph_daemon="osd.9"}}'] = -7200
    for number, rule in enumerate(_SENT):
        matched = _told({**labels, "n": str(number)}, rule)
        series[f"told{{{matched}}}"] = value
        texts = {"text": "SUMMARY {summary} TEXT {description}".format(**rule["annotations"])}
        rules.append(
            {
                "alert": rule["alert"],
                "expr": f'told{{n="{number}"}}',
                "labels": rule["labels"],
                "annotations": texts,
            }
        )
    case = {
        "interval": "15s",
        "input_series": [
            {"series": name, "values": f"{figure}x9"} for name, figure in series.items()
        ],
        "alert_rule_test": [
            {"eval_time": when, "alertname": name, "exp_alerts": []}
            for name in dict.fromkeys(rule["alert"] for rule in rules)
        ],
    }
    groups = {"groups": [{"name": "told", "rules": rules}]}
    (at / "rules.yml").write_text(yaml.safe_dump(groups))
    (at / "test.yml").write_text(yaml.safe_dump({"rule_files": ["rules.yml"], "tests": [case]}))
    argv = [*tool("tentacle", "promtool"), "test", "rules", "test.yml"]
    done = subprocess.run(argv, cwd=at, capture_output=True, text=True, timeout=120)
    found: dict[int, str] = {}
    number = -1
    for key, told in _GOT.findall(done.stdout + done.stderr):
        if key == "n":
            number = int(told)
        elif key == "text":
            found[number] = _as_sent(told)
    assert sorted(found) == list(range(len(_SENT))), done.stdout + done.stderr
    return [found[number] for number in range(len(_SENT))]


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return _shown(_LABELS | _KNOWN, _LOOKED_UP, "1m", tmp_path_factory.mktemp("known"))


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        (1, r"\b1 (\w+ )?(OSDs|objects|scrubs|reactors|requests|errors|scrapes)\b"),
        (1234567, r"copies.*e\+0"),
    ],
)
def test_numbers_are_as_a_person_writes_them(value: int, wrong: str, tmp_path: Path) -> None:
    texts = _shown(_LABELS | _KNOWN, (), "1m", tmp_path, value)
    # Those of a whole cluster begin at more than one OSD.
    assert not [it for it in texts if re.search(wrong, it) and "half of the cluster" not in it]


@pytest.fixture(scope="module")
def not_known(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """At the first evaluation, without the series of the OSD's exporter."""
    return _shown(_LABELS | _NOT_KNOWN, (), "0m", tmp_path_factory.mktemp("not-known"))


_NUMBERS: Final = [
    pytest.param(number, id=f"{rule['alert']}-{rule['labels']['severity']}-{number}")
    for number, rule in enumerate(_SENT)
]


@pytest.mark.parametrize("number", _NUMBERS)
def test_an_alert_says_where_since_when_why_whether_it_can_wait_and_what_to_type(
    number: int, known: list[str]
) -> None:
    text = known[number]
    order = r"Where: .+\. Since: .+\. Likely cause: .+\. Can it wait: .+\. Look at this first.+`.+`"
    assert re.search(order, text), text
    assert not _HOLES.search(text), text
    assert "Where: osd.3" not in text or "Where: osd.3 on host ceph3, cluster c1." in text
    assert "Worst first" not in text or re.search(r"Worst first: osd\.(\d) on host ceph\1", text)


@pytest.mark.parametrize("number", _NUMBERS)
def test_what_is_not_known_is_left_out_and_the_text_stays_whole(
    number: int, not_known: list[str]
) -> None:
    text = not_known[number]
    order = r"Where: .+\. Since: .+\. (Likely.+\. )?Can it wait: .+\. Look at this first.+`.+`"
    assert re.search(order, text), text
    assert not _HOLES.search(text), text
    assert "on host" not in text


def _by_name(texts: list[str]) -> dict[str, str]:
    """The last text of each name."""
    return {rule["alert"]: text for rule, text in zip(_SENT, texts, strict=True)}


def test_the_time_is_when_it_began_and_not_when_it_was_sent(known: list[str]) -> None:
    """It fires at once in this test, so what the expression itself waited for is before that."""
    of = _by_name(known)
    assert "Since: 00:00 UTC, 1 January." in of["CephQosExporterDown"]
    assert "Since: 23:55 UTC, 31 December." in of["CephQosReplicaSlow"]
    assert "Since: 23:45 UTC, 31 December." in of[f"{_NO_ANSWER}CanWait"], "counts OSDs"


def test_the_host_of_the_osd_to_blame_is_named_too(known: list[str]) -> None:
    of = _by_name(known)
    blamed = "Likely cause: device by osd.4 on host ceph4."
    assert blamed in of["CephQosReservationViolated"]


def test_a_second_cause_of_the_same_osd_is_named_and_none_of_another(known: list[str]) -> None:
    of = _by_name(known)
    assert " on host ceph4. Also: cpu. Can it wait" in of["CephQosReservationViolated"]


def test_an_alert_about_many_osds_says_how_many_have_each_cause(known: list[str]) -> None:
    (text,) = [it for it in known if "Worst first: osd.3" in it and "silences those" in it]
    assert "Likely cause: device. Also: cpu on 1 OSD. Can it wait: no." in text, "other culprits"


# Names that somebody may give a pool, image, bucket, client, host or device.
_HURTING: Final = {
    "a quote": 'a"b',
    "a backslash": "a\\b",
    "a backslash at the end": "a\\",
    "more PromQL": 'a"} or {__name__=~".+"} #',
    "a line break": "a\nb",
    "a backtick": "a`b",
    "a template": "{{ end }}{{ template }}",
    "verbs": "%s%[1]q%d%%",
    "a control character": "a\x07\x0b\x7fb",
    "other letters": "\u00e4\u65e5\u672c",
}


def _looked_up_of(name: str) -> Iterator[str]:
    """Series of the alert's OSD, class and cluster, and of another cluster."""
    name = _quoted(name)
    osd = f"cluster={name},ceph_daemon={name}"
    yield f'{PerOsd.INSTANCE}{{{osd},instance="ours:10130"}}'
    for klass in (name, '"client"'):
        yield f'{PerClass.MAIN_CAUSE}{{{osd},class={klass},cause="device",by={name}}}'
        yield f'{PerClass.LASTING_EVIDENCE}{{{osd},class={klass},cause="cpu",by={name}}}'
        yield f'{PerClusterClass.MAIN_CAUSE}{{cluster={name},class={klass},cause="cpu"}}'
    yield f'{PerOsd.INSTANCE}{{cluster="c2",ceph_daemon="osd.1",instance="foreign:10130"}}'
    yield (
        f'{PerClass.MAIN_CAUSE}{{cluster="c2",ceph_daemon="osd.1",class="client",'
        'cause="foreign",by="foreign"}'
    )


@pytest.mark.parametrize("of_class", ["hurts", "client"])
@pytest.mark.parametrize("name", _HURTING.values(), ids=list(_HURTING))
def test_no_name_breaks_a_text_or_shows_what_another_has(
    name: str, of_class: str, tmp_path: Path
) -> None:
    labels = dict.fromkeys({**_LABELS, **_KNOWN, "run": "", "scenario": "", "slo": ""}, name)
    if of_class == "client":
        labels["class"] = "client"
    texts = _shown(labels, tuple(_looked_up_of(name)), "1m", tmp_path)
    for text in texts:
        assert not re.search(r"foreign|error expanding|%!", text), text
    violated = _by_name(texts)["CephQosReservationViolated"]
    assert f"Likely cause: device by {name} on host ours. Also: cpu by {name}." in violated
    assert "Since: 23:55 UTC, 31 December." in violated, "found by all of its labels"


_CALLS: Final = re.compile(r'printf "((?:[^"\\]|\\.)*)"([^|}]*)\| query')
_VERBS: Final = re.compile(r"%(?:\[(\d+)\])?(.)")
_NUMBER: Final = re.compile(r"\((?:.*\| value|\$value)\)")


def test_every_value_in_a_query_of_a_text_is_quoted_by_q_or_is_a_number() -> None:
    texts = [text for rule in _ALERTS for text in rule["annotations"].values()]
    calls = [call for text in texts for call in _CALLS.findall(text)]
    assert len(calls) > 100
    for query, given in calls:
        values = re.findall(r"\([^()]*(?:\([^()]*\)[^()]*)*\)|\S+", given)
        for position, (index, verb) in enumerate(_VERBS.findall(query)):
            value = values[int(index) - 1 if index else position]
            assert verb == ("v" if _NUMBER.fullmatch(value) else "q"), (query, value)


_QUERIES: Final = re.compile(r'printf "((?:[^"\\]|\\.)*)"[^}]*\| query')
_SERIES: Final = re.compile(
    r"(?<![\w:])(?:[a-z_]+:)?(?:cephqos_|ALERTS)[\w:]+(?P<matchers>\{[^}]*)?"
)


def test_no_query_of_an_alert_about_one_osd_reads_all_osds() -> None:
    """With hundreds of such alerts it would be read as often at each evaluation."""
    of_osd = [
        it for it in _SENT if "Where: {{ $labels.ceph_daemon }}" in it["annotations"]["description"]
    ]
    assert len(of_osd) >= 6
    texts = "".join(text for rule in of_osd for text in rule["annotations"].values())
    read = [it for query in _QUERIES.findall(texts) for it in _SERIES.finditer(query)]
    assert len(read) > 50
    assert not [it[0] for it in read if "cluster=" not in (it["matchers"] or "")]
