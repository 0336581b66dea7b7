"""The policy file: what holds for whom, and one clear line for every mistake."""

import re
from pathlib import Path

import pytest
import yaml

from cephqos_base import yamlfile
from cephqos_base.errors import ConfigError
from cephqos_exporter.qos.policy import Policy, load_policy, parse_policy

FSID = "c0ffee00-0000-4000-8000-000000000001"
GOOD = """
version: 1
targets:
  - class: client
    scope: osd
    osds: [3, 4]
    reservation: 0.7
  - class: client
    scope: osd
    reservation: 0.5
    limit: 0.9
    baseline: 21500
  - class: background_recovery
    scope: cluster
    reservation: 0.25
    baseline: 60000
    cluster: c0ffee00-0000-4000-8000-000000000001
"""


def parse(document: object) -> Policy:
    return parse_policy(yamlfile.parse(yaml.safe_dump(document), "p.yml"))


def line_of(error: pytest.ExceptionInfo[ConfigError]) -> str:
    """The message, without the number of the line."""
    assert error.value.line
    return re.sub(r"^p\.yml:\d+: ", "p.yml: ", str(error.value))


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "policy.yml"
    path.write_text(text)
    return path


def test_the_first_target_that_names_an_osd_holds_for_it(tmp_path: Path) -> None:
    policy = load_policy(write(tmp_path, GOOD))
    named = policy.for_osd("client", "3", FSID)
    other = policy.for_osd("client", "7", FSID)
    assert named is not None
    assert other is not None
    assert (named.reservation_ratio, named.limit_ratio, named.baseline) == (0.7, None, None)
    assert (other.reservation_ratio, other.limit_ratio, other.baseline) == (0.5, 0.9, 21500)
    assert policy.for_osd("background_recovery", "3", FSID) is None


def test_a_cluster_target_holds_for_its_cluster_only(tmp_path: Path) -> None:
    policy = load_policy(write(tmp_path, GOOD))
    assert [t.reservation_ratio for t in policy.for_cluster(FSID)] == [0.25]
    assert policy.for_cluster("another") == []


def target(**changes: object) -> dict[str, object]:
    entry: dict[str, object] = {"class": "client", "scope": "osd", "reservation": 0.5, **changes}
    return {key: value for key, value in entry.items() if value is not None}


BAD: list[tuple[str, object, str]] = [
    ("nothing", None, "p.yml: found nothing; allowed: a mapping"),
    ("a list", [], "p.yml: found []; allowed: a mapping"),
    (
        "no version",
        {"targets": [target()]},
        "p.yml: version: found nothing; allowed: a value: this key is required",
    ),
    ("version", {"version": 2, "targets": [target()]}, "p.yml: version: found 2; allowed: 1"),
    (
        "version true",
        {"version": True, "targets": [target()]},
        "p.yml: version: found true; allowed: 1",
    ),
    (
        "unknown top key",
        {"version": 1, "target": []},
        "p.yml: target: found an unknown key; allowed: targets (one of version, targets)",
    ),
    (
        "no targets",
        {"version": 1, "targets": []},
        "p.yml: targets: found []; allowed: a list of at least one target",
    ),
]
BAD_TARGETS: list[tuple[dict[str, object], str]] = [
    ({"class": "clients"}, "class: found 'clients'; allowed: one of client, background_recovery, "),
    ({"class": None}, "class: found nothing; allowed: a value: this key is required"),
    ({"class": "immediate"}, "class: found 'immediate'; allowed: one of client, "),
    ({"scope": "pool"}, "scope: found 'pool'; allowed: one of osd, cluster"),
    ({"reservation": 1.5}, "reservation: found 1.5; allowed: a number above 0, at most 1"),
    ({"reservation": 0}, "reservation: found 0; allowed: a number above 0, at most 1"),
    ({"reservation": True}, "reservation: found true; allowed: a number above 0"),
    ({"reservation": "50%"}, "reservation: found '50%'; allowed: a number above 0"),
    ({"reservation": float("nan")}, "reservation: found .nan; allowed: a number above 0"),
    ({"reservation": None}, "reservation: found nothing; allowed: a reservation, a limit or both"),
    ({"limit": 0.4}, "limit: found 0.4; allowed: at least the reservation, 0.5"),
    ({"limit": -1}, "limit: found -1; allowed: above 0"),
    ({"baseline": 0}, "baseline: found 0; allowed: above 0"),
    ({"scope": "cluster"}, "baseline: found nothing; allowed: normalised ops/s of the whole clust"),
    (
        {"scope": "cluster", "baseline": 1, "osds": [1]},
        "osds: found an unknown key; allowed: class, scope, reservation, limit, baseline, cluster",
    ),
    ({"osds": "all"}, "osds: found 'all'; allowed: a list of OSD numbers"),
    ({"osds": []}, "osds: found []; allowed: a list of OSD numbers"),
    ({"osds": ["osd.1"]}, "osds: found ['osd.1']; allowed: a list of OSD numbers"),
    ({"osds": [True]}, "osds: found [True]; allowed: a list of OSD numbers"),
    ({"cluster": 7}, "cluster: found 7; allowed: a text"),
    ({"weight": 2}, "weight: found an unknown key; allowed: class, scope, reservation, limit, "),
]


@pytest.mark.parametrize(("document", "line"), [case[1:] for case in BAD], ids=[c[0] for c in BAD])
def test_a_document_that_is_not_a_policy_is_refused_in_one_line(
    document: object, line: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(document)
    assert line_of(caught) == line


@pytest.mark.parametrize(("changes", "line"), BAD_TARGETS, ids=[c[1][:40] for c in BAD_TARGETS])
def test_a_bad_target_is_named_with_what_was_found_and_what_is_allowed(
    changes: dict[str, object], line: str
) -> None:
    document = {"version": 1, "targets": [target(baseline=1), target(**changes)]}
    with pytest.raises(ConfigError) as caught:
        parse(document)
    assert line_of(caught).startswith(f"p.yml: targets[1].{line}")
    assert "\n" not in str(caught.value)


def test_a_target_that_is_no_mapping_is_named_by_its_place() -> None:
    with pytest.raises(ConfigError, match=r"p\.yml:2: targets\[0\]: found 'x'; allowed: a mapping"):
        parse({"version": 1, "targets": ["x"]})


def test_the_same_target_twice_is_refused() -> None:
    document = {"version": 1, "targets": [target(), target(reservation=0.6)]}
    with pytest.raises(ConfigError, match=r"targets\[1\]: found a second target for client"):
        parse(document)


def test_a_file_that_is_not_there_or_not_yaml_is_refused_in_one_line(tmp_path: Path) -> None:
    for path in (tmp_path / "none.yml", write(tmp_path, "version: [1\n  targets: ]x")):
        with pytest.raises(ConfigError) as caught:
            load_policy(path)
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)


def test_a_key_given_twice_is_refused_and_not_the_last_ones_word(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD.replace("    limit: 0.9\n", "    reservation: 0.9\n"))
    with pytest.raises(ConfigError) as caught:
        load_policy(path)
    assert str(caught.value) == (
        f"{path}:11: targets[1].reservation: found the key twice; allowed: it once"
    )
