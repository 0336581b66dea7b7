"""The scenarios that come with cephqos, and scenarios from files."""

from importlib import resources
from pathlib import Path

from cephqos_base.errors import UsageError
from cephqos_base.textfile import reason_of


def shipped() -> dict[str, str]:
    """Name and text of every shipped scenario."""
    folder = resources.files("cephqos_loadgen").joinpath("scenarios")
    return {
        file.name.removesuffix(".yaml"): file.read_text(encoding="utf-8")
        for file in sorted(folder.iterdir(), key=lambda file: file.name)
        if file.name.endswith(".yaml")
    }


def read(name_or_path: str) -> tuple[str, str]:
    """Text of a scenario and the name of its file; UsageError if there is none."""
    path = Path(name_or_path)
    if path.suffix in (".yaml", ".yml") or "/" in name_or_path:
        try:
            return path.read_text(encoding="utf-8"), name_or_path
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"cannot read scenario {name_or_path}: {reason_of(error)}") from None
    known = shipped()
    if name_or_path not in known:
        raise UsageError(
            f"no scenario {name_or_path!r}: there are {', '.join(known)}, or give a .yaml file"
        )
    return known[name_or_path], f"{name_or_path}.yaml"
