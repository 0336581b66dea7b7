"""Programs that are built once from Go modules and kept in the cache: Loki, nfpm, helm, …

`python -m cephqos_stack.tools` (`make tools`) builds what is missing. `find_tool("loki")` returns
its path. deploy/tools has the modules with their pinned versions; a change there gives another
folder in the cache. A tool is built beside its final place and renamed when complete.
"""

import asyncio
import hashlib
import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cephqos_base.errors import CephqosError, UsageError
from cephqos_base.terminal import say
from cephqos_loadgen.errors import LabError
from cephqos_loadgen.lab import builds
from cephqos_loadgen.lab.paths import cache_dir
from cephqos_loadgen.processes import in_background, run
from cephqos_loadgen.progress import Progress, Say

_TIMEOUT = 1800.0  # a build that takes longer hangs: all together need some minutes of two cores
_SOURCES: Final = Path(__file__).parents[2] / "deploy" / "tools"
# Static, so that they run on any distribution and in an empty container; without debug symbols.
_BUILD: Final = ("env", "CGO_ENABLED=0", "go", "build", "-v", "-trimpath", "-ldflags=-s -w")


@dataclass(frozen=True, slots=True)
class Tool:
    """A program, and the Go package that it is built from."""

    name: str
    module: str  # folder in deploy/tools
    package: str
    always: bool = True  # False: built only where its name is given
    tags: str = ""  # of the build
    machine: str = ""  # as Go calls it; empty: this one


TOOLS: Final = {
    tool.name: tool
    for tool in (
        Tool("cephqos-collector", "collector", "."),
        Tool("loki", "loki", "github.com/grafana/loki/v3/cmd/loki"),
        Tool("logcli", "loki", "github.com/grafana/loki/v3/cmd/logcli"),
        Tool("nfpm", "nfpm", "github.com/goreleaser/nfpm/v2/cmd/nfpm"),
        Tool("helm", "helm", "helm.sh/helm/v3/cmd/helm"),
        Tool("kubeconform", "kubeconform", "github.com/yannh/kubeconform/cmd/kubeconform"),
        Tool(
            "thanos",
            "thanos",
            "github.com/thanos-io/thanos/cmd/thanos",
            always=False,
            tags="slicelabels",
        ),
        Tool(
            "cyclonedx-gomod",
            "cyclonedx-gomod",
            "github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod",
            always=False,
        ),
        Tool(
            "actionlint", "actionlint", "github.com/rhysd/actionlint/cmd/actionlint", always=False
        ),
        *(
            Tool(f"cephqos-collector-{machine}", "collector", ".", always=False, machine=machine)
            for machine in ("amd64", "arm64")
        ),
    )
}


def find_tool(name: str) -> Path | None:
    """The program that `make tools` built, or else one on the PATH; None: there is neither."""
    built = _target(TOOLS[name]) if _SOURCES.is_dir() else None
    if built and built.exists():
        return built
    path = shutil.which(name)
    return Path(path) if path else None


def _target(tool: Tool) -> Path:
    """Where the tool is, or will be built."""
    words = (*_BUILD, tool.package, tool.tags, tool.machine)
    recipe = hashlib.sha256(" ".join(filter(None, words)).encode())
    for file in sorted((_SOURCES / tool.module).iterdir()):
        recipe.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return cache_dir() / "tools" / f"{tool.name}-{recipe.hexdigest()[:8]}" / tool.name


def log_of(tool: Tool) -> Path:
    """The log of a build that runs or has failed."""
    return _target(tool).parent.with_suffix(".log")


async def ensure_tool(name: str, progress: Progress, nice: int = 5) -> Path:
    """The path of the program. It is built if it is not there yet, with this niceness."""
    tool = TOOLS[name]
    target = _target(tool)
    if target.exists():
        return target
    await _check_go(_wanted_go(tool))
    target.parent.mkdir(parents=True, exist_ok=True)
    with progress.step(f"building {tool.name}, once") as say:
        async with builds.alone(target.parent.with_suffix(".lock"), say):
            if not target.exists():
                await _build(tool, target, say, nice)
    return target


async def _build(tool: Tool, target: Path, say: Say, nice: int) -> None:
    building = target.with_suffix(".building")
    module, log = _SOURCES / tool.module, log_of(tool)
    listed = await _output(["go", "-C", str(module), "list", "-deps", tool.package])
    total = len(listed.split())
    # Go takes `-C` only as the first option.
    machine = [f"GOARCH={tool.machine}"] if tool.machine else []
    argv = ["nice", "-n", str(nice), _BUILD[0], *machine, *_BUILD[1:4]]
    argv += ["-C", str(module), *_BUILD[4:]]
    argv += [f"-tags={tool.tags}"] if tool.tags else []
    argv += ["-o", str(building), tool.package]
    async with in_background(argv, log) as process:

        def tell() -> None:
            say(_how_far(log.read_text(errors="replace"), total))

        await builds.to_its_end(f"building {tool.name}", process, log, _TIMEOUT, tell)
    building.rename(target)
    log.unlink()


def _how_far(output: str, total: int) -> str:
    """Progress of a build: `-v` names each package that is compiled now, not those in a cache."""
    lines = output.splitlines()
    compiled = [line for line in lines if not line.startswith("go: ")]
    if compiled:
        return f"{len(compiled)} of at most {total} packages compiled"
    return f"{len(lines)} modules downloaded" if lines else f"{total} packages"


def _wanted_go(tool: Tool) -> str:
    go_mod = (_SOURCES / tool.module / "go.mod").read_text()
    return next(line.split()[1] for line in go_mod.splitlines() if line.startswith("go "))


async def _check_go(wanted: str) -> None:
    if shutil.which("go") is None:
        raise UsageError(f"Go not found. {needs_go(wanted)}")
    output = await _output(["go", "env", "GOVERSION", "GOTOOLCHAIN"])
    version, toolchain = [*output.split(), "", ""][:2]
    if not go_will_do(version, toolchain, wanted):
        raise UsageError(f"{shutil.which('go')} is {version or 'too old'}. {needs_go(wanted)}")


def go_will_do(version: str, toolchain: str, wanted: str) -> bool:
    """Whether this Go is new enough, or may download one that is (from 1.21 on)."""
    numbers = _numbers(version)
    may_download = numbers >= (1, 21) and toolchain not in ("", "local")
    return numbers >= _numbers(wanted) or may_download


def needs_go(wanted: str) -> str:
    return (
        f"Building it needs Go {wanted} or newer: `apt-get install golang-go`"
        " on Debian forky, or from go.dev/dl. Go 1.21 or newer (golang-go of Debian trixie and of"
        " bookworm-backports) works too with GOTOOLCHAIN=auto: it downloads the version it needs."
    )


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version)[:3])


async def _output(argv: Sequence[str]) -> str:
    done = await run(argv, within=_TIMEOUT)
    if done.returncode != 0:
        raise LabError(f"{' '.join(argv)}: {done.stderr.strip()[-800:]}")
    return done.stdout


async def _ensure_all(names: Sequence[str]) -> None:
    progress = Progress()
    for name in names:
        say(f"{name:<18} {await ensure_tool(name, progress)}")


def main(names: Sequence[str]) -> int:
    """Build the tools of these names; without any, all that tests and the demo need."""
    unknown = [name for name in names if name not in TOOLS]
    try:
        if unknown:
            raise UsageError(f"unknown tool {unknown[0]}: there are {', '.join(TOOLS)}")
        asyncio.run(_ensure_all(names or [name for name, tool in TOOLS.items() if tool.always]))
    except CephqosError as error:
        say(f"cephqos: {error}", file=sys.stderr)
        return error.exit_status
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
