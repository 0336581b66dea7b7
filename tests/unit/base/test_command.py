"""The `cephqos` command as a whole: what it says of a line that it does not understand."""

import pytest

from cephqos_base.command import build_parser


@pytest.mark.parametrize(
    ("line", "command"),
    [
        (["run", "--chek"], "cephqos run"),
        (["archive", "ls", "--bogus"], "cephqos archive ls"),
        (["lab", "fault", "stop", "--osd", "1", "--bogus"], "cephqos lab fault stop"),
        (["--bogus", "scenarios"], "cephqos"),
    ],
)
def test_an_unknown_option_names_the_help_of_its_own_command(
    line: list[str], command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        build_parser().parse_args(line)
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith(f"{command}: unrecognized arguments: --")
    assert said.endswith(f"(see {command} --help)\n")
