"""`cephqos top` reads the page of a test run beside those of exporters."""

from cephqos_base.servers import Address, HttpServer
from cephqos_loadgen.engines.fio_output import ClientStatus, IoTotals, JobStatus
from cephqos_loadgen.live.endpoint import serve
from cephqos_loadgen.live.metrics import LiveMetrics
from cephqos_loadgen.live.state import Live, RunPlace
from cephqos_loadgen.top.build import build_picture
from cephqos_loadgen.top.figures import Selection
from cephqos_loadgen.top.sources.exporters import Exporters


async def test_a_run_shows_its_phase_its_progress_and_the_latency_at_the_client() -> None:
    live = Live(RunPlace("r1", "study", "fsid", "point=a", 2, {"load": 5.0}))
    live.repeats, live.eta = (3, 12), 600.0
    live.start_client("load", "client.0", "rbd")
    async with serve("127.0.0.1:0", LiveMetrics(live), fall_back=False) as url:
        address = Address.parse(url.removesuffix("/metrics"), "--exporter")
        async with HttpServer(address) as connection:
            source = Exporters([connection])
            _served(live, {4_000_000: 10})
            await source.fetch(Selection("fsid"))
            _served(live, {4_000_000: 1010, 9_000_000: 10})
            picture = build_picture(await source.fetch(Selection("fsid")), Selection("fsid"))
    (run,) = picture.runs
    assert (run.scenario, run.phase, run.repeats_done, run.repeats) == ("study", "load", 3, 12)
    assert run.remaining == 600
    (latency,) = picture.latency
    assert (latency.who, latency.op) == ("client", "read")
    assert latency.p50 and 0.0035 < latency.p50 < 0.0045
    assert latency.p999 and 0.0085 < latency.p999 < 0.0095


def _served(live: Live, bins_ns: dict[int, int]) -> None:
    """The client's latencies since it started, as fio reports them."""
    count = sum(bins_ns.values())
    totals = IoTotals(count, count * 4096, count, 0.004 * count, 0.0, 0.009, bins_ns)
    job = JobStatus({"read": totals, "write": IoTotals()}, 0.0, 1.0)
    live.status("load", "client.0", ClientStatus(0.0, {"v": job}))
