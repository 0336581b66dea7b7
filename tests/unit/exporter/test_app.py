"""The real command: how it starts, reloads and ends."""

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

import pytest
from tests.exporter_process import COMMAND, exporter, replaying
from tests.waiting import lives, wait_until

from cephqos_exporter.ceph.cluster import tied
from cephqos_loadgen.programs import free_ports


def test_it_serves_what_daemons_of_three_releases_say(tmp_path: Path) -> None:
    recordings = ("pacific/idle", "reef/idle", "tentacle/idle")
    with (
        replaying(tmp_path / "run", recordings, 3) as sockets,
        exporter(f"--discovery.sockets={sockets}") as running,
    ):
        page = running.get()
    assert page.count("cephqos_daemon_up{") == 3
    assert page.count('reason=""} 1') == 3
    assert 'ceph_osd_op{ceph_daemon="osd.0"' in page


def test_a_signal_reloads_the_configuration_and_a_bad_one_changes_nothing(tmp_path: Path) -> None:
    config = tmp_path / "exporter.yml"
    config.write_text("collector: {ops: true}")
    with (
        replaying(tmp_path / "run", ["reef/idle"], 1) as sockets,
        exporter(f"--discovery.sockets={sockets}", f"--config.file={config}") as running,
    ):
        assert 'collector="ops"' in running.get()
        config.write_text("collector: {ops: false}")
        running.signal(signal.SIGHUP)
        running.wait_for("reloaded the configuration")
        assert 'collector="ops"' not in running.get()
        config.write_text("collector: {oops: true}")
        running.signal(signal.SIGHUP)
        line = running.wait_for("kept the configuration in force")
        assert "collector.oops: found an unknown key" in line
        assert 'collector="perf"' in running.get()
        config.write_text("web: {telemetry-path: /elsewhere}")
        running.signal(signal.SIGHUP)
        running.wait_for("reloaded the configuration")
        assert 'collector="ops"' in running.get("/elsewhere")


def test_a_reload_does_not_wait_for_a_scrape_under_way_or_for_a_child(tmp_path: Path) -> None:
    """With a child that hangs in the kernel, further signals had no effect any more."""
    config = tmp_path / "exporter.yml"
    config.write_text("collector: {ops: true}")
    hang = ("--faulty", "1", "--fault", "hang")
    with (
        replaying(tmp_path / "run", ["reef/idle"], 2, *hang) as sockets,
        exporter(f"--discovery.sockets={sockets}", f"--config.file={config}") as running,
    ):
        pages: list[str] = []
        asking = threading.Thread(
            target=lambda: pages.append(running.get(X_Prometheus_Scrape_Timeout_Seconds="12"))
        )
        asking.start()
        time.sleep(0.5)  # the scrape waits for the one that hangs
        for switch in ("false", "true"):
            config.write_text(f"collector: {{ops: {switch}}}")
            running.signal(signal.SIGHUP)
            running.wait_for("reloaded the configuration", 11)
        assert not pages
        asking.join(timeout=20)
    assert pages[0].count("cephqos_daemon_up{") == 2


def test_terminated_it_finishes_the_scrape_under_way_and_ends_with_0(tmp_path: Path) -> None:
    hang = ("--faulty", "1", "--fault", "hang")
    with (
        replaying(tmp_path / "run", ["reef/idle"], 2, *hang) as sockets,
        exporter(f"--discovery.sockets={sockets}", "--scrape.timeout=1.5") as running,
    ):
        pages: list[str] = []
        asking = threading.Thread(target=lambda: pages.append(running.get()))
        asking.start()
        time.sleep(0.5)  # the scrape waits for the one that hangs
        running.signal(signal.SIGTERM)
        asking.join(timeout=10)
        assert running.process.wait(timeout=10) == 0
    assert pages[0].count("cephqos_daemon_up{") == 2


def test_terminated_it_ends_in_time_whatever_a_request_is_ready_to_wait(tmp_path: Path) -> None:
    hang = ("--faulty", "1", "--fault", "hang")
    with (
        replaying(tmp_path / "run", ["reef/idle"], 2, *hang) as sockets,
        exporter(f"--discovery.sockets={sockets}", "--scrape.timeout=600") as running,
    ):
        pages: list[str] = []
        asking = threading.Thread(
            target=lambda: pages.append(running.get(X_Prometheus_Scrape_Timeout_Seconds="1e9"))
        )
        asking.start()
        time.sleep(1)
        started = time.monotonic()
        running.signal(signal.SIGTERM)
        assert running.process.wait(timeout=20) == 0
        assert time.monotonic() - started < 10
        asking.join(timeout=10)
    assert len(re.findall(r"^cephqos_daemon_up{.*} 1$", pages[0], re.MULTILINE)) == 1
    assert len(re.findall(r"^cephqos_daemon_up{.*} 0$", pages[0], re.MULTILINE)) == 1


def test_terminated_it_ends_in_time_also_if_nobody_takes_its_log(tmp_path: Path) -> None:
    """A log collector that hangs: the line that it ends had no end."""
    [port] = free_ports(1)
    taken, given = os.pipe()
    argv = [COMMAND, f"--web.listen-address=127.0.0.1:{port}", f"--discovery.sockets={tmp_path}"]
    process = subprocess.Popen(tied(argv), stderr=given)
    try:
        wait_until(lambda: answers(f"http://127.0.0.1:{port}/-/healthy"), "an answer")
        os.set_blocking(given, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(given, b"x" * 4096)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(given, b"x")
        os.set_blocking(given, True)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == -signal.SIGALRM
    finally:
        process.kill()
        process.wait()
        os.close(taken)
        os.close(given)


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):  # noqa: S310
            return True
    except OSError:
        return False


def test_an_address_that_is_taken_is_told_with_who_has_it_and_another(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for flags in ([], ["--config.check"]):
            argv = [COMMAND, *flags, f"--web.listen-address=127.0.0.1:{port}"]
            argv.append(f"--discovery.sockets={tmp_path}/*")
            ended = subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False)
            assert ended.returncode == 2
            assert f"127.0.0.1:{port}, which is in use; allowed: a free port, " in ended.stderr
            assert f"such as --web.listen-address=127.0.0.1:{port % 65535 + 1};" in ended.stderr
            assert f"process {os.getpid()} (" in ended.stderr
            assert ended.stderr.count("\n") == 1


def test_a_configuration_is_valid_while_an_exporter_runs_with_it(tmp_path: Path) -> None:
    with exporter(f"--discovery.sockets={tmp_path}") as running:
        argv = [COMMAND, "--config.check", f"--web.listen-address={running.address}"]
        checked = subprocess.run(argv, capture_output=True, text=True, timeout=20, check=False)
    assert checked.returncode == 0, checked.stderr


def test_without_any_daemon_it_serves_its_own_metrics(tmp_path: Path) -> None:
    with exporter(f"--discovery.sockets={tmp_path}") as running:
        page = running.get()
    assert "cephqos_exporter_build_info{" in page
    assert "process_cpu_seconds_total " in page


def test_the_process_metrics_can_be_left_out(tmp_path: Path) -> None:
    flags = (f"--discovery.sockets={tmp_path}", "--web.disable-exporter-metrics")
    with exporter(*flags) as running:
        assert "process_" not in running.get()


def test_tests_that_are_killed_leave_no_process_behind(tmp_path: Path) -> None:
    program = f"""
import sys, time
sys.path.insert(0, {str(Path(__file__).parents[3])!r})
from pathlib import Path
from tests.exporter_process import exporter, replaying
with replaying(Path({str(tmp_path)!r}, "run"), ["reef/idle"], 1) as sockets:
    with exporter(f"--discovery.sockets={{sockets}}"):
        print("ready", flush=True)
        time.sleep(60)
"""
    parent = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    with parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "ready\n"
        tasks = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
        assert len(tasks) == 2
        parent.kill()
    wait_until(lambda: not any(lives(int(pid)) for pid in tasks), "the children end")


@pytest.mark.parametrize("form", ["logfmt", "json"])
def test_the_log_is_one_line_per_event(tmp_path: Path, form: str) -> None:
    with exporter(f"--discovery.sockets={tmp_path}", f"--log.format={form}") as running:
        line = running.log[0]
    expected = '"level": "info"' if form == "json" else "level=info"
    assert expected in line


def test_help_names_every_flag_and_the_precedence() -> None:
    shown = subprocess.run([COMMAND, "--help"], capture_output=True, text=True, check=True).stdout
    for flag in ("--web.listen-address", "--web.config.file", "--collector.perf", "--role"):
        assert flag in shown
    assert "beats the file" in " ".join(shown.split())


def test_help_shows_how_to_switch_off_what_is_on() -> None:
    shown = subprocess.run([COMMAND, "--help"], capture_output=True, text=True, check=True).stdout
    words = " ".join(shown.split())
    assert "--collector.perf, --no-collector.perf The daemons' own counters" in words
    assert "[default: true]" in words
    assert "[default: ]" not in words
    assert "True" not in words and "None" not in words


def test_children_import_nothing_from_the_working_directory(tmp_path: Path) -> None:
    """Whoever may write there would run code as the exporter's user."""
    executed = tmp_path / "executed"
    here = tmp_path / "here"
    here.mkdir()
    for module in ("rados", "json", "queue", "ctypes", "threading", "time", "math", "orjson"):
        (here / f"{module}.py").write_text(f"open({str(executed)!r}, 'a').write({module!r})\n")
    conf = tmp_path / "ceph.conf"
    conf.write_text("[global]\n")
    common = [COMMAND, "--cluster.python", sys.executable, "--cluster.conf", str(conf)]
    for role in ("cluster", "probe"):
        flags = [f"--role={role}", "--probe.pools=p", "--cluster.ceph=/bin/false"]
        argv = [*common, *flags, "--config.check"]
        subprocess.run(argv, cwd=here, capture_output=True, timeout=60, check=False)
        argv = [*common, *flags, "--web.listen-address=127.0.0.1:0"]
        with subprocess.Popen(argv, cwd=here, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            for line in process.stderr:
                if "listening on" in line:
                    address = line.rsplit("//", 1)[1].strip().rstrip('"')
                    with urllib.request.urlopen(f"http://{address}/metrics", timeout=30):
                        time.sleep(1)
                    break
            process.terminate()
            process.wait(timeout=20)
    assert not executed.exists(), executed.read_text()
