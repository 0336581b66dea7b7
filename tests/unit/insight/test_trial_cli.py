"""`cephqos trial`: its command line."""

import pytest

from cephqos_base.command import main

TRY = ("trial", "--try", "profile=high_client_ops")


def test_the_dry_run_needs_no_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*TRY, "--dry-run", "--seed", "1", "--block", "60s"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("6 to 12 rounds of blocks of 1 min, seed 1: 13 min to 25 min\n")
    assert "    ceph config set osd osd_mclock_profile high_client_ops\n" in shown


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ((), "which cluster? Name it with --conf FILE or --lab NAME"),
        (("--lab", "a", "--conf", "b"), "which cluster?"),
        (("--block", "5s"), "--block 5s: expected 15 s or more"),
        (("--rounds", "4"), "--least-rounds 6 --rounds 4: expected"),
        (("--by", "p90"), "--by p90: expected one of p99, p95, p50, mean"),
        (("--try", "profile=high_client_ops"), "one to three candidates that are different"),
        (("--harm", "0.9", "--lab", "a"), "--harm 0.9: expected more than 1"),
        (("--lab", "a", "--prometheus", "nonsense"), "expected a URL"),
    ],
)
def test_a_mistake_is_said_in_one_line_with_status_2(
    capsys: pytest.CaptureFixture[str], more: tuple[str, ...], message: str
) -> None:
    assert main([*TRY, *more]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1
