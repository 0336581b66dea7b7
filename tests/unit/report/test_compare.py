"""`cephqos compare`: matching, intervals, rules, refusals, exit statuses, on archives on disk."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.recorded import ARCHIVE
from tests.synthetic_archive import Builder, Osds, SyntheticRepeat

from cephqos_base.command import main
from cephqos_base.errors import UsageError
from cephqos_loadgen.report.compare.fail_rules import read_rule

Edit = Callable[[dict[str, Any]], None]


def run(*arguments: str) -> int:
    return main(["compare", *arguments])


def edited(path: Path, edit: Edit) -> None:
    data = json.loads(path.read_text())
    edit(data)
    path.write_text(json.dumps(data))


def copy(to: Path, *, iops: float = 1.0, latency: float = 1.0, name: str = "other") -> Path:
    """The committed archive with the throughput and the latencies of its loads multiplied."""
    folder = to / name
    shutil.copytree(ARCHIVE, folder)
    edited(folder / "archive.json", lambda data: data.update(run=name))

    def slower(record: dict[str, Any]) -> None:
        for phase in record["phases"].values():
            for step in phase["result"].get("steps", []):
                for op in ("total", "read", "write"):
                    if figures := step[op]:
                        scale(figures)

    def scale(figures: dict[str, Any]) -> None:
        figures["iops"] *= iops
        figures["latency_mean_seconds"] *= latency
        bins = figures["latency_bins_ns"]
        figures["latency_bins_ns"] = {str(round(int(c) * latency)): n for c, n in bins.items()}

    for path in folder.glob("repeats/*/repeat.json"):
        edited(path, slower)
    return folder


def test_a_run_compared_with_itself_finds_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(str(ARCHIVE), str(ARCHIVE), "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["differences"]) > 10
    assert {line["result"] for line in found["differences"]} == {"no difference found"}
    assert {line["change_ratio"] for line in found["differences"]} == {0.0}


def test_the_words_are_on_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(str(ARCHIVE), str(ARCHIVE)) == 0
    assert "No difference found." in capsys.readouterr().out


def test_half_the_throughput_is_a_regression(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = copy(tmp_path, iops=0.5)
    assert run(str(ARCHIVE), str(other)) == 1
    out = capsys.readouterr().out
    assert "worse: only: client, all of it: Throughput" in out
    assert "(-50.0 %)" in out


def test_double_the_throughput_is_none(tmp_path: Path) -> None:
    assert run(str(ARCHIVE), str(copy(tmp_path, iops=2.0))) == 0


@pytest.mark.parametrize(
    ("rule", "status"),
    [("iops < 0.45 * ref", 0), ("iops < 0.55 * ref", 1), ("iops<ref", 1), ("iops > ref", 0)],
)
def test_a_rule_decides_what_fails(tmp_path: Path, rule: str, status: int) -> None:
    assert run(str(ARCHIVE), str(copy(tmp_path, iops=0.5)), "--fail-if", rule) == status


@pytest.mark.parametrize(
    ("rule", "status"),
    [
        ("iops < 1.2 * ref", 1),  # a fifth more was asked for
        ("iops > 0.5 * ref", 1),
        ("iops < 1.001 * ref", 0),  # which noise can hide
        ("iops < 0.9 * ref", 0),
        ("violated_seconds > 1.5 * ref", 0),
    ],
)
def test_a_rule_that_is_surely_true_fails_where_nothing_changed(
    tmp_path: Path, rule: str, status: int
) -> None:
    sides = made(tmp_path, "before"), made(tmp_path, "after")
    assert run(*sides, "--fail-if", rule) == status


def test_a_rule_against_a_reference_of_nothing_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No second was violated before, and now many are."""
    points = {"a": [SyntheticRepeat(rate) for rate in (990.0, 1000.0, 1010.0)]}
    short = Osds(attained=300.0, waiting=5.0)
    before = made(tmp_path, "before")
    after = str(Builder(run="after", points=points, osds=short).write(tmp_path / "after"))
    assert run(before, after, "--fail-if", "violated_seconds > 1.1 * ref") == 2
    assert "the reference is 0, so a rule needs a number, not ref" in capsys.readouterr().out
    assert run(before, after, "--fail-if", "violated_seconds > 5") == 1


def test_a_rule_that_only_noise_breaks_does_not_fail(tmp_path: Path) -> None:
    """The p99 of the two repeats differs by far more than the 1 % that is added."""
    other = copy(tmp_path, latency=1.01)
    assert run(str(ARCHIVE), str(other), "--fail-if", "clat_p99 > 1.001 * ref") == 0


def test_a_rule_broken_by_one_repeat_cannot_be_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = copy(tmp_path, iops=0.5)
    shutil.rmtree(other / "repeats" / "002-only-r2")
    assert run(str(ARCHIVE), str(other), "--fail-if", "iops < 0.9 * ref") == 2
    assert "one repeat, so noise is not known" in capsys.readouterr().out


@pytest.mark.parametrize(
    "rule", ["clat_p99", "clat_p99 > ", "speed > 1.1 * ref", "iops > ref * 2; rm", "", "1 < iops"]
)
def test_a_wrong_rule_is_refused_in_one_line(rule: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(str(ARCHIVE), str(ARCHIVE), "--fail-if", rule) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_rule_on_a_figure_that_no_row_has_is_a_mistake() -> None:
    assert run(str(ARCHIVE), str(ARCHIVE), "--fail-if", "recovery_seconds > 2 * ref") == 2


def test_a_bound_of_its_own_is_in_the_shown_unit() -> None:
    rule = read_rule("clat_p99 > 20")
    assert (rule.bound, rule.of_reference, rule.metric.unit) == (20.0, False, "ms")
    with pytest.raises(UsageError, match="no figure clat"):
        read_rule("clat > 20")


def test_other_environments_are_refused_and_what_differs_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = copy(tmp_path)
    edited(other / "environment.json", lambda data: data["host"].update(kernel="1.2.3", cpus=64))
    assert run(str(ARCHIVE), str(other)) == 2
    refused = capsys.readouterr().err
    assert "Kernel: " in refused and "1.2.3 (other)" in refused and "CPU: " in refused
    assert "Memory" not in refused
    assert run(str(ARCHIVE), str(other), "--although-different") == 0
    assert "the environments differ: Kernel" in capsys.readouterr().out


def test_another_limit_of_the_devices_is_another_environment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = copy(tmp_path)
    edited(other / "plan.json", lambda plan: plan["points"][0]["lab"].update(device_iops=400))
    assert run(str(ARCHIVE), str(other)) == 2
    assert "Device limit: not recorded (" in (said := capsys.readouterr().err)
    assert "400 reads and as many writes/s per OSD (other)" in said


@pytest.mark.parametrize(("rule", "status"), [("attainment < 25", 1), ("attainment < 20", 0)])
def test_a_rule_may_be_about_the_reservation_of_clients(rule: str, status: int) -> None:
    """A step of the archive's curve kept 24 % on its worst OSD, without demand for more."""
    assert run(str(ARCHIVE), str(ARCHIVE), "--fail-if", rule) == status
    assert run(str(ARCHIVE), str(ARCHIVE), "--fail-if", "violated_seconds > 0") == 0


def made(folder: Path, name: str, **more: Any) -> str:
    points = {"a": [SyntheticRepeat(rate) for rate in (990.0, 1000.0, 1010.0)]}
    osds = Osds(attained=800.0, waiting=5.0)
    return str(Builder(run=name, points=points, osds=osds, **more).write(folder / name))


def test_what_speaks_against_a_run_is_said_beside_its_differences(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Another program had 40 % of the CPUs in one of the runs; the other is sound."""
    quiet, busy = made(tmp_path, "quiet"), made(tmp_path, "busy", busy={"others": 0.4})
    assert run(quiet, busy) == 0
    (line,) = [it for it in capsys.readouterr().out.splitlines() if it.startswith("caveat")]
    assert line.startswith("caveat about busy: Other processes than those of the run")
    assert line.endswith("Most: 40%, policy=a, most of it by make.")
    assert run(quiet, busy, "--json") == 0
    found = json.loads(capsys.readouterr().out)["caveats"]
    assert found["quiet"] == [] and [it["severity"] for it in found["busy"]] == ["serious"]
    assert run(quiet, busy, "--markdown") == 0
    assert "busy: Other processes than those of the run" in capsys.readouterr().out


def test_lesser_caveats_are_counted_where_there_are_serious_ones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quiet = made(tmp_path, "quiet", busy={"others": 0.15})
    busy = made(tmp_path, "busy", busy={"others": 0.4, "steal": 0.02})
    assert run(quiet, busy) == 0
    lines = [it for it in capsys.readouterr().out.splitlines() if it.startswith("caveat")]
    assert lines[1:] == ["caveat about busy: 1 more (cephqos report shows them)"]


def test_another_load_is_refused_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = copy(tmp_path)

    def bigger(plan: dict[str, Any]) -> None:
        plan["points"][0]["phases"][0]["action"]["block_size"] = 65536

    edited(other / "plan.json", bigger)
    assert run(str(ARCHIVE), str(other)) == 2
    assert "phase client, block_size: 4096 (" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("until", {"kind": "duration", "at_most": 9.0}, "phase client, until at_most: "),
        ("start", {"kind": "at", "delay": 77.0}, "phase client, start delay: "),
    ],
)
def test_loads_of_other_times_are_refused_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], key: str, value: Any, said: str
) -> None:
    """A minute of a fresh pool is not five minutes of it."""
    other = copy(tmp_path)
    edited(other / "plan.json", lambda plan: plan["points"][0]["phases"][0].update({key: value}))
    assert run(str(ARCHIVE), str(other)) == 2
    assert said in capsys.readouterr().err


def test_clients_that_were_configured_otherwise_are_refused_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = copy(tmp_path)
    edited(
        other / "plan.json", lambda plan: plan["points"][0].update(client=[["rbd_cache", "true"]])
    )
    assert run(str(ARCHIVE), str(other)) == 2
    assert "clients' configuration, rbd_cache: false (" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        (
            "settings",
            [{"section": "osd", "name": "osd_max_backfills", "value": "9"}],
            "settings, osd osd_max_backfills: absent (",
        ),
        ("devices", {"scheduler": "bfq"}, "devices, scheduler: "),
    ],
)
def test_points_of_one_name_that_were_configured_otherwise_are_refused_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], key: str, value: Any, said: str
) -> None:
    other = copy(tmp_path)
    edited(other / "plan.json", lambda plan: plan["points"][0].update({key: value}))
    assert run(str(ARCHIVE), str(other)) == 2
    assert said in capsys.readouterr().err
    assert run(str(ARCHIVE), str(other), "--although-different") == 0


def test_other_pools_are_refused_and_each_difference_is_said_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In points after the first too."""
    sides = []
    for name, replicas in (("three", 3), ("two", 2)):
        rates = {value: [SyntheticRepeat(1000.0)] * 3 for value in ("a", "b", "c")}
        folder = Builder(run=name, points=rates).write(tmp_path / name)
        sides.append(str(folder))

        def pooled(plan: dict[str, Any], replicas: int = replicas) -> None:
            for point in plan["points"][1:]:
                point["pools"] = [{"name": "p", "size": replicas, "pg_num": 32, "keep": False}]

        edited(folder / "plan.json", pooled)
    assert run(*sides) == 2
    assert capsys.readouterr().err.count("pool p, size: 3 (three), 2 (two)") == 1


def test_a_phase_that_one_run_lacks_is_named_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = copy(tmp_path)
    edited(other / "plan.json", lambda plan: plan["points"][0]["phases"].pop(0))
    assert run(str(ARCHIVE), str(other)) == 2
    assert capsys.readouterr().err.count("phase client: only in ") == 1


@pytest.mark.parametrize("command", ["compare", "report"])
def test_a_run_and_the_one_that_resumed_it_are_not_two_runs(
    tmp_path: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """They have repeats in common: those would be compared with themselves, or count twice."""
    first, second = Path(made(tmp_path, "first")), Path(made(tmp_path, "second"))
    (second / "events.jsonl").write_text(
        json.dumps({"time": 1.0, "event": "resumed", "source": f"/elsewhere/{first.name}"}) + "\n"
    )
    assert main([command, str(first), str(second)]) == 2
    assert "second resumed first" in capsys.readouterr().err


def test_one_archive_alone_is_a_mistake() -> None:
    assert run(str(ARCHIVE)) == 2


def test_the_reference_can_be_named(tmp_path: Path) -> None:
    other = copy(tmp_path, iops=0.5)
    both = (str(ARCHIVE), str(other))
    assert run(*both, "--reference", str(other)) == 0
    assert run(*both, "--reference", str(ARCHIVE)) == 1


@pytest.mark.parametrize("form", ["--markdown", "--html"])
def test_it_is_written_in_other_forms(form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(str(ARCHIVE), str(ARCHIVE), form) == 0
    assert "no difference found" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["archive.json", "plan.json", "repeats/001-only-r1/repeat.json"])
def test_an_archive_that_cannot_be_read_is_a_mistake_and_no_regression(
    tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    other = copy(tmp_path)
    (other / name).write_text("{")
    assert run(str(ARCHIVE), str(other)) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_run_without_finished_repeats_has_nothing_to_compare(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = copy(tmp_path)
    for path in other.glob("repeats/*/repeat.json"):
        edited(path, lambda data: data.update(status="failed"))
    assert run(str(ARCHIVE), str(other)) == 2
    assert "nothing to compare" in capsys.readouterr().err
