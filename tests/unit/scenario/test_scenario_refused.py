"""A scenario that cannot mean what it says is refused in one line, before anything runs."""

import pytest
from tests.cpu import cost

from cephqos_base.errors import ConfigError, UsageError
from cephqos_loadgen.scenario import library
from cephqos_loadgen.scenario.parse import Choices, parse
from cephqos_loadgen.scenario.variables import variable_from_text

LOAD = "{engine: rbd, pool: p, rw: read, bs: 4K, depth: 4}"
DEEP = LOAD.replace("4}", '"${depth}"}')
SWEEP = "{engine: rbd, pool: p, rw: read, bs: 4K, sweep: {depths: [1, 2], dwell: 2s}}"

SCRUB = "  - {name: s, scrub: {pool: p}}\n"
PREFILL = "prefill: {pool: p, objects: {count: 1, size: 4K}}"
BENCH = "rados_bench: {pools: [p], op: write, size: 4K, in_flight: 1}"


def scenario(matrix: str = "", phases: str = "", pools: str = "") -> str:
    return f"""\
scenario: s
variables: {{depth: 1}}
pools: [{pools or "{name: p, images: {size: 16M}}"}]
{f"matrix: {matrix}" if matrix else ""}
phases:
{phases or phase(DEEP)}
"""


def phase(fio: str = LOAD, until: str = "{duration: 5s}", rest: str = "") -> str:
    return f"  - {{name: load, fio: {fio}, until: {until}}}\n{rest}"


def benched(name: str, bench: str = BENCH) -> str:
    return f"  - {{name: {name}, {bench}, until: {{duration: 1s}}}}\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (scenario("{deph: [1, 16]}"), r"s.yaml:4: matrix.deph: found deph, which nothing uses"),
        (scenario("{depth: []}"), r"matrix.depth: found none; allowed: at least one value"),
        (scenario("{depth: [1, 1]}"), r"matrix.depth: found 1, 1; allowed: values that are diff"),
        (
            scenario(phases=phase(SWEEP.replace("[1, 2]", "[]"), "done")),
            "depths that are different",
        ),
        (scenario(phases=phase(SWEEP.replace("[1, 2]", "[2, 2]"), "done")), "depths that are diff"),
        (scenario(phases=phase(SWEEP)), "no 'until': a sweep, a search, pass"),
        (scenario(phases=phase(until="{duration: 0}")), r"until.duration: found 0; .*above 0"),
        (scenario(phases=phase(until="{phase: load}")), "load, which waits for its own end"),
        (
            scenario(
                phases=phase(
                    until="{phase: late}",
                    rest="  - {name: late, wait: {}, until: {duration: 1s}}\n",
                )
            ),
            "load, which waits for its own end",
        ),
        (
            scenario(pools="{name: p, images: {size: 16M}}, {name: p, images: {size: 16M}}"),
            "found two pools p",
        ),
        (
            scenario(
                phases="  - {name: load, fio: {engine: rbd, pool: p, rw: read, bs: 4K,"
                " search: {target: 5ms, least: 8, most: 4, dwell: 2s}}}\n"
            ),
            r"search.most: found 4; allowed: at least 8",
        ),
        *(
            (scenario(phases=phase(f"{{engine: {fio}, rw: {rw}, bs: 4K, {more}}}")), message)
            for fio, rw, more, message in (
                ("rbd, pool: p", "read", "read_percent: 50", "no 'read_percent': it is for rw and"),
                ("rbd, pool: p", "read", "path: /x", "no 'path': it is for engines other than rbd"),
                ("libaio, path: /x", "read", "pool: p", "no 'pool': it is for engines other than"),
                ("libaio, path: /x", "read", "volumes: 2", "no 'volumes': it is for engines with"),
                (
                    "rbd, pool: p",
                    "read",
                    "cache: writeback",
                    "cache: found 'writeback'; .*one of no",
                ),
                (
                    "guest, pool: p",
                    "read",
                    "cache: directsync",
                    "found 'directsync'; allowed: one of",
                ),
            )
        ),
        *(
            (scenario(phases=phase(SWEEP.replace("dwell: 2s", more), "done")), message)
            for more, message in (
                ("dwell: 1.5s", "dwell: found '1.5s'; allowed: whole seconds, for clients"),
                ("dwell: 366d", "dwell: found '366d'; .*at most a year"),
                ("dwell: 2s, stop: {latency: 0}", "stop.latency: found 0; allowed: a time above 0"),
            )
        ),
        (scenario(phases=phase(SWEEP.replace("4K,", "4K, depth: 1,"), "done")), "no 'depth': it"),
        (scenario(phases=phase(until="{duration: 200ms}")), "duration: found '200ms'; .*whole sec"),
        *(
            (scenario(phases=phase()[:-2] + f", {key}: 9s}}\n"), f"no '{key}' beside a duration")
            for key in ("at_most", "expect")
        ),
        (
            scenario(phases=phase(until="{steady_state: {window: 0s}}")),
            "window: found '0s'; allowed: a time above 0",
        ),
        *(
            (scenario(phases=phase(until=until)), "a phase that .*, for what phase load waits for")
            for until in ("scrub_done", "recovery_done")
        ),
        *(
            (
                scenario(
                    phases="  - {name: w, wait: {}, until: {duration: 1s}}\n"
                    + phase()[:-2]
                    + f", start: {{when: {event}}}}}\n"
                ),
                "a phase that .*, for what phase load waits for",
            )
            for event in ("scrub_started", "recovery_started")
        ),
        (
            scenario(phases=phase()[:-2] + ", start: {when: scrub_started}}\n"),
            "a phase before this one, from whose start the event counts",
        ),
        (scenario(pools="{name: p, images: {size: 999999999999999999T}}"), "images.size: found"),
        (
            scenario("{depth: [1, 2]}") + "only: {depth: []}\n",
            "found depth=; allowed: one of 1, 2",
        ),
        *(
            (scenario(matrix, phases=phase()), "which do the same; allowed: points that differ")
            for matrix in (
                "{x: {a: {}, b: {}}}",
                "{x: {a: {flags: [noout]}, b: {}}, y: {c: {flags: [noout]}}}",
            )
        ),
        (
            scenario() + "capacity: {total: 1, bs: 4K}\n",
            "capacity.total: found 1; .* at least 4096",
        ),
        (
            scenario(phases="  - {name: b, osd_bench: {total: 1K, bs: 4K}}\n"),
            "total: found '1K'; .* at least 4096",
        ),
        *(
            (
                scenario(
                    phases="  - {name: b, until: {duration: 1s}, rados_bench: "
                    f"{{pools: {pools}, op: write, size: 4K, in_flight: 4}}}}\n"
                ),
                "allowed: pools that are different, at least one",
            )
            for pools in ("[]", "[p, p]")
        ),
        *(
            (scenario(matrix), message)
            for matrix, message in (
                (
                    "{depth: [1], x: {a: {variables: {depth: 4}}, b: {flags: [noout]}}}",
                    "found depth=1,x=a; allowed: axes of which none replaces the values of depth",
                ),
                (
                    "{depth: [1, 2], 'osd:osd_max_scrubs': [1],"
                    " x: {a: {settings: {osd: {osd_max_scrubs: 4}}}}}",
                    "found depth=1,osd_max_scrubs=1,x=a; allowed: axes of which none replaces",
                ),
                (
                    "{'osd:osd_max_scrubs': [1, 2], 'global:osd_max_scrubs': [3, 4]}",
                    "found two axes osd_max_scrubs; allowed: axes of different names",
                ),
            )
        ),
        *(
            (
                scenario(phases=f"  - {{name: x, {kind}, until: {until}}}\n{SCRUB}"),
                f"until: found '?{found}'?; allowed: {allowed}: what this kind of phase can end",
            )
            for kind, until, found, allowed in (
                ("scrub: {pool: p}", "{duration: 9s}", "duration", "done, scrub_done"),
                ("scrub: {pool: p}", "{phase: s}", "phase", "done, scrub_done"),
                (PREFILL, "{duration: 9s}", "duration", "done"),
                ("osd_bench: {total: 4K, bs: 4K}", "{duration: 9s}", "duration", "done"),
                ("pin: {strategy: default}", "{duration: 9s}", "duration", "done"),
                (BENCH, "{phase: s}", "phase", "duration"),
                (BENCH, "scrub_done", "scrub_done", "duration"),
                (BENCH, "{steady_state: {}}", "steady_state", "duration"),
                ("wait: {}", "{steady_state: {}}", "steady_state", "done, duration, .*, phase"),
            )
        ),
        (
            scenario(phases="  - {name: in, osd_in: {}}\n  - {name: out, osd_out: {}}\n"),
            "found none; allowed: before phase in: a phase osd_out of OSD last",
        ),
        (
            scenario(phases="  - {name: o, osd_out: {osd: 0}}\n  - {name: i, osd_in: {osd: 1}}\n"),
            "allowed: before phase i: a phase osd_out of OSD 1",
        ),
        *(
            (
                scenario(phases=f"  - {{name: c, change: {what}}}\n"),
                "change: found none; allowed: settings to change",
            )
            for what in ("{}", "{osd: {}}")
        ),
        (
            scenario(phases=phase(until="{steady_state: {window: 9s}}")[:-2] + ", at_most: 9s}\n"),
            r"found 9 s; allowed: a window that is shorter than at_most \(9 s\)",
        ),
        (
            scenario(pools="{name: p}", phases=SCRUB),
            "found none; allowed: before phase s: images or objects in pool p",
        ),
        *(
            (
                scenario(phases=before + benched("b", BENCH.replace("write", op))),
                "allowed: before phase b: a rados_bench that writes 4 KiB to p",
            )
            for op, before in (("seq", ""), ("rand", benched("w", BENCH.replace("4K", "8K"))))
        ),
        (
            scenario(phases="  - {name: f, flags: {set: [noout], clear: [noout]}}\n"),
            "found noout; allowed: flags to set or to clear, not both",
        ),
        (
            scenario(phases=phase(LOAD.replace("4}", "4, options: {steadystate: 'iops:5%'}}"))),
            "a search, passes and steadystate keep their own time",
        ),
        (
            scenario("{depth: [" + ", ".join(map(str, range(1, 202))) + "]}") + "repeats: 1000\n",
            "found 201,000; allowed: at most 100,000 repeats of all points",
        ),
        (
            scenario("{depth: [1, 2]}", "  - {name: w, wait: {}, until: {duration: '${depth}s'}}\n")
            + "find: {axis: depth, keeping: 0.9, phase: w}\n",
            "find.phase: found 'w'; allowed: one of $",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused_in_one_line(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        parse(text, "s.yaml")
    assert "\n" not in str(refused.value)


def test_a_variable_that_nothing_uses_is_refused_on_the_command_line() -> None:
    """The archive would say that the run had this value."""
    text = scenario(phases=phase()).replace("{depth: 1}", "{depth: 1, deph: 1}")
    assert parse(text, "s.yaml").points
    for name in ("depth", "deph"):
        with pytest.raises(UsageError, match=f"^--var {name}: nothing uses it; expected one"):
            parse(text, "s.yaml", Choices(variables={name: variable_from_text("16")}))


def test_a_named_value_may_replace_what_another_named_one_sets() -> None:
    policy = "policy: {p: {settings: {osd: {osd_max_scrubs: 1}}}}"
    more = "more: {x: {}, y: {settings: {osd: {osd_max_scrubs: 4}}}}"
    points = parse(scenario(f"{{{policy}, {more}}}"), "s.yaml").points
    assert [point.settings[0].value for point in points] == ["1", "4"]


def test_what_phases_before_have_written_can_be_read_and_scrubbed() -> None:
    phases = benched("w") + benched("r", BENCH.replace("write", "seq")) + SCRUB
    points = parse(scenario(pools="{name: p}", phases=phases), "s.yaml").points
    assert [phase.name for phase in points[0].phases] == ["w", "r", "s"]


def test_a_matrix_of_a_million_points_is_refused_before_it_is_expanded() -> None:
    hundred = ", ".join(str(n) for n in range(1, 101))
    axes = ", ".join(f"osd:osd_option_{n}: [{hundred}]" for n in range(3))
    text = scenario(f"{{{axes}}}")

    def refuse() -> None:
        with pytest.raises(ConfigError, match="found 1,000,000; allowed: at most 10,000 points"):
            parse(text, "s.yaml")

    assert cost(refuse, 5) < 5


def test_a_scrub_may_say_that_it_ends_when_scrubs_are_done() -> None:
    text = scenario(phases="  - {name: scrub, scrub: {pool: p}, until: scrub_done}\n")
    assert parse(text, "s.yaml").points[0].phases[0].until.kind == "scrub_done"


@pytest.mark.parametrize("scale", ["tiny", "lab", "study"])
def test_every_shipped_scenario_is_taken(scale: str) -> None:
    for name, text in library.shipped().items():
        assert parse(text, f"{name}.yaml", Choices(scale=scale)).points
