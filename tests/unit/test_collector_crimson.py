"""The Crimson collector, on a reply written from the sources: no Crimson OSD was asked."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.replay import crimson as crimson_replies
from tests.replay.daemons import Recording

from cephqos_exporter.ceph.asok import READ_ONLY_COMMANDS
from cephqos_exporter.collectors.crimson import METRICS, TABLE, CrimsonCollector
from cephqos_exporter.errors import Malformed
from cephqos_exporter.model import Daemon, DaemonView, Family, Host, ReplyMissing, render_labels

SCHEMA = Path(__file__).parents[1] / "recordings" / "crimson" / "schema"


def view(reply: object, *, kind: str = "osd", error: str = "") -> DaemonView:
    daemon = Daemon(kind, "0", "c", Path("/run/osd.0.asok"))
    replies: dict[str, Any] = {} if error else {METRICS: reply}
    errors = {METRICS: error} if error else {}
    return DaemonView(daemon, render_labels(daemon.labels), replies, errors, 1.0, Host())


def samples(families: Iterable[Family]) -> dict[str, float]:
    own = 'ceph_daemon="osd.0",cluster="c",'
    return {
        f"{family.name}{suffix}{{{labels.removeprefix(own)}}}": value
        for family in families
        for suffix, labels, value in family.samples
    }


def one(name: str, value: object, **labels: str) -> dict[str, Any]:
    return {"metrics": [{name: {**labels, "value": value}}]}


@pytest.fixture
def schema() -> object:
    reply: object = orjson.loads(Recording.load(SCHEMA).replies[METRICS])
    return reply


def test_the_committed_replies_are_what_their_generator_writes(tmp_path: Path) -> None:
    crimson_replies.write(tmp_path)
    assert Recording.load(tmp_path).replies == Recording.load(SCHEMA).replies


def test_reactors_are_shown_by_shard_in_base_units(schema: object) -> None:
    found = samples(CrimsonCollector().collect(view(schema)))
    assert found['cephqos_crimson_reactor_utilization_ratio{shard="0"}'] == 0.9325
    assert found['cephqos_crimson_reactor_utilization_ratio{shard="2"}'] == 0.9525
    assert found['cephqos_crimson_reactor_busy_seconds_total{shard="0"}'] == 571
    assert found['cephqos_crimson_reactor_steal_seconds_total{shard="1"}'] == 1.201
    assert found['cephqos_crimson_reactor_aio_bytes_total{shard="0",op="write"}'] == 5.9e9
    sent = 'cephqos_crimson_network_bytes_total{group="main",shard="1",direction="sent"}'
    assert found[sent] == 2.1e9 + 1
    starved = 'cephqos_crimson_scheduler_seconds_total{group="main",shard="0",state="starve"}'
    assert found[starved] == 0.21


def test_the_latency_of_seastore_is_a_summary_in_seconds(schema: object) -> None:
    found = samples(CrimsonCollector().collect(view(schema)))
    key = 'cephqos_crimson_seastore_op_seconds_%s{op="do_transaction",shard="0"}'
    assert found[key % "sum"] == 1234.567
    assert found[key % "count"] == 400_000


def test_the_labels_of_seastar_are_kept(schema: object) -> None:
    found = samples(CrimsonCollector().collect(view(schema)))
    queue = 'class="default",iogroup="0",mountpoint="none",shard="0"'
    assert found[f"cephqos_crimson_io_queue_length{{{queue}}}"] == 1
    journal = 'submitter="SEGMENTED_JOURNAL",shard="0",part="padding"'
    assert found[f"cephqos_crimson_seastore_journal_bytes_total{{{journal}}}"] == 95_000_000


def test_types_come_from_the_table_and_no_name_has_two(schema: object) -> None:
    families = list(CrimsonCollector(everything=True).collect(view(schema)))
    types = {family.name: family.type for family in families}
    assert len(types) == len(families)
    assert types["cephqos_crimson_seastore_bytes"] == "gauge"  # Crimson registers a counter
    assert types["cephqos_crimson_segment_cleaner_segments_open"] == "unknown"
    for name, type_ in types.items():
        assert name.endswith("_total") or type_ != "counter", name


def test_every_entry_of_the_table_has_one_type_and_help_per_name() -> None:
    told: dict[str, tuple[str, str]] = {}
    for shown in TABLE.values():
        assert told.setdefault(shown.name, (shown.type, shown.help)) == (shown.type, shown.help)


def test_the_sample_has_every_metric_of_the_table(schema: Any) -> None:
    assert TABLE.keys() <= {name for entry in schema["metrics"] for name in entry}


def test_what_is_not_in_the_table_shows_on_request_only(schema: object) -> None:
    usual = samples(CrimsonCollector().collect(view(schema)))
    everything = samples(CrimsonCollector(everything=True).collect(view(schema)))
    key = 'cephqos_crimson_cache_trans_created{src="MUTATE",shard="0"}'
    assert key not in usual
    assert everything[key] == 650_000
    assert usual.items() < everything.items()
    assert len(usual) <= 3 * 60  # shards


def test_a_figure_that_is_not_finite_is_absent(schema: object) -> None:
    found = samples(CrimsonCollector(everything=True).collect(view(schema)))
    assert not [key for key in found if "flow_ratio" in key]
    assert samples(CrimsonCollector().collect(view(one("reactor_polls", None)))) == {}


def test_names_that_prometheus_would_refuse_are_made_fit() -> None:
    reply = one("odd-name.x", 3, **{"a b": "1"})
    found = samples(CrimsonCollector(everything=True).collect(view(reply)))
    assert found == {'cephqos_crimson_odd_name_x{a_b="1"}': 3}


def test_a_classic_osd_does_not_know_the_command_and_has_no_series() -> None:
    with pytest.raises(ReplyMissing) as error:
        list(CrimsonCollector().collect(view(None, error="unknown_command")))
    assert error.value.reason == "unknown_command"


def test_the_command_is_on_the_read_only_list() -> None:
    collector = CrimsonCollector()
    osd = collector.commands(view({}).daemon)
    assert {command.prefix for command in osd} <= set(READ_ONLY_COMMANDS)
    assert collector.commands(view({}, kind="mon").daemon) == ()
    assert list(collector.collect(view({}, kind="mon"))) == []


@pytest.mark.parametrize(
    "reply",
    [
        None,
        [],
        {},
        {"metrics": 3},
        {"metrics": [3]},
        {"metrics": [{"reactor_polls": 3}]},
        {"metrics": [{"reactor_polls": {"shard": "0"}}]},
        one("reactor_polls", "many"),
        one("reactor_polls", True),
        one("seastore_op_lat", {"sum": "x", "count": 1}),
        one("seastore_op_lat", {"sum": 1.0}),
    ],
)
def test_a_malformed_reply_is_an_error(reply: object) -> None:
    with pytest.raises(Malformed):
        list(CrimsonCollector().collect(view(reply)))
