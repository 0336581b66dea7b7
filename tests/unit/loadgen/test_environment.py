"""What an archive says of the host that a run ran on."""

from pathlib import Path

from cephqos_loadgen.run import environment


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_the_governors_of_all_cpus_and_the_tuned_profile_are_recorded(tmp_path: Path) -> None:
    cpus = tmp_path / "sys/devices/system/cpu"
    for number, governor in enumerate(("performance", "powersave", "performance")):
        write(cpus / f"cpu{number}/cpufreq/scaling_governor", f"{governor}\n")
    write(tmp_path / "etc/tuned/active_profile", "network-latency\n")
    found = environment.host(tmp_path / "sys", tmp_path / "etc")
    assert found["cpu_governors"] == ["performance", "powersave"]
    assert found["tuned_profile"] == "network-latency"


def test_without_frequency_scaling_and_tuned_there_is_nothing_to_say(tmp_path: Path) -> None:
    found = environment.host(tmp_path / "sys", tmp_path / "etc")
    assert (found["cpu_governors"], found["tuned_profile"]) == ([], "")
