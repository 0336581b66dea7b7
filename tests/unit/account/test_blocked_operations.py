"""Operations that have been in progress for longer than the complaint time."""

from cephqos_exporter.collectors.ops import OpsCollector

from ..osd_views import OSD, RecordedOsd, value


def _with_blocked(operations: int) -> RecordedOsd:
    osd = RecordedOsd("reef", "idle")
    osd.counters("osd")["op_wip"] = 0
    osd.replies["dump_blocked_ops_count"] = {"complaint_time": 30, "num_blocked_ops": operations}
    return osd


def test_blocked_operations_come_with_the_age_that_makes_them_so() -> None:
    families = _with_blocked(4).scrape(OpsCollector())
    assert value(families, "cephqos_ops_blocked") == 4
    assert value(families, "cephqos_ops_blocked_after_seconds") == 30


def test_blocked_operations_are_counted_every_five_seconds_and_thousands_more_rarely() -> None:
    pauses = []
    for blocked in (0, 900, 3000, 50_000):  # the OSD counts them one by one
        collector = OpsCollector()
        _with_blocked(blocked).scrape(collector)
        pauses += [c.ttl for c in collector.commands(OSD) if c.prefix == "dump_blocked_ops_count"]
    assert pauses == [4.5, 4.5, 15, 60]
