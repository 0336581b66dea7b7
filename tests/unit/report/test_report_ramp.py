"""What fio did in a ramp is in no figure: CPU and devices are not taken over it either."""

from dataclasses import replace
from pathlib import Path

import pytest

from cephqos_base.series import DaemonSeries
from cephqos_loadgen.engines.fio_output import IoTotals, figures_over
from cephqos_loadgen.report.arrays.samples import read_samples
from cephqos_loadgen.report.figures import metrics
from cephqos_loadgen.report.figures.cost import cost_of
from cephqos_loadgen.report.figures.loads import _clients
from cephqos_loadgen.results.host import HostUse, ProcessUse, ThreadUse, step_name
from cephqos_loadgen.results.phase import Step
from cephqos_loadgen.run_recording.columns import ColumnWriter

CPU = f'{DaemonSeries.CPU_SECONDS}{{ceph_daemon="osd.0",mode="user"}}'
DONE = figures_over(IoTotals(10_000, 40_960_000, 10_000, 10.0, bins_ns={1_000_000: 10_000}), 20.0)
# Ten seconds of a ramp, twenty that count.
STEP = Step(4, 1000.0, 1030.0, 20.0, DONE, DONE, None, {"v": DONE})


def client(seconds: float) -> HostUse:
    threads = {"fio": ThreadUse(seconds, 0.0, 1, seconds)}
    return HostUse(20.0, None, {}, {"load.client.0": ProcessUse(1, threads)})


def test_cpu_of_a_ramp_is_not_that_of_the_ios_after_it(tmp_path: Path) -> None:
    """An OSD that uses four cores in the ramp and one after it."""
    writer = ColumnWriter(tmp_path / "metrics.columns")
    for second in range(31):
        writer.add(1000.0 + second, {CPU: 4.0 * min(second, 10) + max(0, second - 10)})
    writer.close()
    samples = read_samples(tmp_path / "metrics.columns", frozenset({DaemonSeries.CPU_SECONDS}))
    counted = replace(STEP, counted_from_unix_seconds=1010.0)
    found = cost_of(counted, samples, None, {})
    assert found[metrics.OSD_CORES.key] == pytest.approx(1.0)
    assert found[metrics.OSD_CPU_PER_IO.key] == pytest.approx(20.0 / 10_000)
    older = cost_of(STEP, samples, None, {})
    assert older[metrics.OSD_CORES.key] == pytest.approx(2.0), "of an archive that does not say"


def test_cpu_of_clients_is_that_of_the_step_where_it_was_recorded() -> None:
    whole, own = client(30.0), client(20.0)
    hosts = {"load": whole, step_name("load", 4): own}
    assert _clients("load", STEP, 1, hosts) is not None
    for recorded, seconds in ((hosts, 20.0), ({"load": whole}, 30.0)):
        use = _clients("load", STEP, 1, recorded)
        assert use is not None
        assert use.processes["load.client.0"].threads["fio"].user_seconds == seconds
