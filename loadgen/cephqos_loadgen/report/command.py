"""The command that repeats a run."""

import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from cephqos_base import yamlfile
from cephqos_base.errors import ConfigError
from cephqos_loadgen.report.figures.analysis import ReportRun
from cephqos_loadgen.scenario.library import shipped


def repeat_command(run: ReportRun) -> str:
    """What was asked for, as a command line. A scenario that is not shipped is in the archive."""
    plan = run.plan
    name = run.manifest.scenario
    scenario = name
    if plan.get("text") and shipped().get(name) != plan["text"]:
        scenario = f"{run.folder}/scenario.yaml"
    words = ["cephqos", "run", scenario]
    words += ["--scale", run.manifest.scale] if run.manifest.scale else []
    words += ["--repeats", str(plan.get("repeats", 1))]
    if plan.get("order", "interleaved") != "interleaved":
        words += ["--order", str(plan["order"])]
        words += ["--seed", str(plan["seed"])] if plan["order"] == "random" else []
    for axis, values in _only(plan):
        words += ["--only", f"{axis}={','.join(values)}"]
    for variable, value in plan.get("variables", []):
        words += ["--var", f"{variable}={value}"]
    return shlex.join(words)


def _only(plan: Mapping[str, Any]) -> Iterator[tuple[str, list[str]]]:
    """The values of axes that ran, where the scenario names more."""
    try:
        scenario = yamlfile.parse(str(plan.get("text", "")), "scenario.yaml").plain()
    except ConfigError:
        return
    matrix = scenario.get("matrix") if isinstance(scenario, dict) else None
    for axis, values in matrix.items() if isinstance(matrix, dict) else ():
        ran = dict.fromkeys(
            str(value)
            for point in plan.get("points", [])
            for name, value in point.get("axes", [])
            if name == axis
        )
        if isinstance(values, dict) and ran and set(ran) != set(map(str, values)):
            yield str(axis), list(ran)
