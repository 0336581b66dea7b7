"""Scenarios from somebody else: what would run a command, name a file or leave its line is refused
in one line, before anything is started."""

import json
import re
import tracemalloc
from pathlib import Path

import pytest
from tests.cpu import cost

from cephqos_base.errors import ConfigError, UsageError
from cephqos_loadgen.ceph_option import conf_line
from cephqos_loadgen.check.preflight import check_plan
from cephqos_loadgen.check.run_options import RunOptions
from cephqos_loadgen.engines.fio_options import OPTIONS
from cephqos_loadgen.scenario.parse import Choices, parse
from cephqos_loadgen.scenario.variables import load, scalar

FIO = "engine: rbd, pool: p, rw: randwrite, bs: 4K"


def scenario(fio: str = FIO, *, more: str = "", name: str = "p") -> str:
    return f"""\
scenario: s
variables: {{v: "1"}}
pools: [{{name: "{name}", images: {{size: 16M}}}}]
{more}
phases:
  - {{name: load, fio: {{{fio}}}, until: {{duration: 1s}}}}
"""


def refusal(text: str, choices: Choices | None = None) -> str:
    with pytest.raises(ConfigError) as refused:
        parse(text, "s.yaml", choices)
    message = str(refused.value)
    assert "\n" not in message
    assert message.isprintable()
    return message


# -- fio -----------------------------------------------------------------------------------------

# Options of fio that run commands, write or read files, choose what is loaded, or belong to the
# plan; in each spelling that fio takes.
DANGEROUS = (
    *("exec_prerun", "exec_postrun", "trigger", "trigger-file", "trigger_remote", "filename"),
    *("directory", "filename_format", "lockfile", "opendir", "write_bw_log", "write_lat_log"),
    *("write_iops_log", "write_hist_log", "write_iolog", "read_iolog", "merge_blktrace_file"),
    *("replay_redirect", "buffer_pattern", "verify_pattern", "verify", "verify_state_load"),
    *("aux-path", "include", "ioengine", "external", "profile", "client", "server", "daemonize"),
    *("output", "output-format", "bandwidth-log", "status-interval", "max-jobs", "cgroup", "uid"),
    *("gid", "ioscheduler", "unlink", "create_only", "allow_mounted_write", "allow_file_create"),
    *("mem", "hugepage-size", "numa_mem_policy", "cpus_allowed", "name", "new_group", "runtime"),
    *("time_based", "numjobs", "iodepth", "rw", "readwrite", "bs", "blocksize", "size", "loops"),
    *("io_size", "fill_device", "pool", "rbdname", "clientname", "clustername", "uri", "hostname"),
    *("port", "namenode", "http_host", "script", "kb_base", "ss", "log_compression", "nice"),
    *("prio", "thread", "description", "wait_for", "", "-", "--", "a=b"),
    *("randrepeat=1 --name", "RANDREPEAT", "randrepeat ", "filename:x", "exec_prerun\\n", "${v}"),
)  # fmt: skip


@pytest.mark.parametrize("option", DANGEROUS)
def test_an_option_of_fio_that_does_not_shape_the_load_is_refused(option: str) -> None:
    text = scenario(f'{FIO}, options: {{"{option}": "1"}}')
    assert "an option of fio that shapes the load" in refusal(text)


ESCAPES = (
    "1\\n[global]\\nexec_prerun=id",
    "1\\nexec_prerun=id",
    "1\\r\\nexec_prerun=id",
    "1 --exec_prerun=id",
    "1=2",
    "--exec_prerun=id",
    "-1",
    "[x]",
    "`id`",
    "$(id)",
    "$jobname",
    "${HOME}",
    "1;id",
    "1|id",
    "1&id",
    "../../etc/passwd",
    "/etc/passwd",
    "file:/etc/passwd",
    "1\\0",
    "1\\u2028x",
    "\\u0661",
    "\\uff11",
    "1\\e[31m",
    "'1'",
    "",
    "9" * 40,
    "1" + "0" * 5000,
    "1e999",
    "nan",
    "0x10",
    " 1",
    "1 ",
    "1,2,3,4",
    "%s",
    "1%%",
)


@pytest.mark.parametrize("value", ESCAPES)
def test_no_value_of_an_option_of_fio_leaves_its_place(value: str) -> None:
    for option, read in OPTIONS.items():
        try:
            text = read(load(f'x: "{value}"', "s.yaml").entries()["x"])
        except ConfigError as refused:
            assert "\n" not in str(refused)
            assert str(refused).isprintable()
        else:  # a number may be spelled in ways that are no harm: what fio gets is plain
            assert re.fullmatch(r"[a-z0-9]+", text), option


# -- raw devices and files -----------------------------------------------------------------------


async def test_a_path_is_loaded_only_when_the_user_names_it() -> None:
    plan = parse(scenario("engine: libaio, path: /dev/sda, rw: write, bs: 4K"), "s.yaml")
    with pytest.raises(UsageError, match=r"loads /dev/sda.*--path /dev/sda") as refused:
        await check_plan(plan, RunOptions(out=Path("out")))
    assert "\n" not in str(refused.value)
    with pytest.raises(UsageError, match="/dev/sda"):
        await check_plan(
            plan, RunOptions(out=Path("out"), paths=("/dev/sdb", "/dev/sd", "/dev/sda/"))
        )
    await check_plan(plan, RunOptions(out=Path("out"), paths=("/dev/sda",)))


@pytest.mark.parametrize(
    "path", ["/dev/x:/etc/passwd", "etc", "/a\\nb", "/a b", "/a${v}$", "/a\\\\"]
)
def test_a_path_is_one_path(path: str) -> None:
    text = scenario(f'engine: libaio, path: "{path}", rw: write, bs: 4K')
    assert "phases[0].fio.path" in refusal(text)


# -- options of Ceph -----------------------------------------------------------------------------

FOREIGN = (
    *("log_file", "admin_socket", "keyring", "key", "keyfile", "plugin_dir", "osd_class_dir"),
    *("erasure_code_dir", "mgr_module_path", "crush_location_hook", "rbd_plugins", "run_dir"),
    *("rbd_persistent_cache_path", "osd_data", "mon_data", "osd_journal", "bluestore_block_path"),
    *("mon_host", "mon_debug_dump_location", "pid_file", "chdir", "setuser", "auth_supported"),
    *("auth_cluster_required", "ms_client_mode", "osd_class_load_list", "rgw_frontends", "fsid"),
    *("osd_erasure_code_plugins", "bluestore_debug_omit_block_device_write", "container_image"),
    *("bluestore_rocksdb_options_annex", "osd_inject_bad_map_crc_probability", "crash_dir"),
    *("heartbeat_file", "openssl_engine_opts", "mon_allow_pool_delete", "rbd_default_map_options"),
    *("mgr/cephadm/x", "mgr/balancer/../x", "mgr/balancer/active\\nx", "osd_"),
    *("osd_x=y", "osd_x\\ny", "[osd]", "#osd_x", "osd_profile\\u00e9", "OSD_MAX_SCRUBS"),
)  # fmt: skip


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize(
    "place",
    ["settings: {{osd: {}}}", "client: {}", "lab: {{settings: {{osd: {}}}}}"],
    ids=["settings", "client", "lab"],
)
def test_an_option_of_ceph_that_names_files_or_programs_is_refused(name: str, place: str) -> None:
    more = place.format(f'{{"{name}": "1"}}')
    assert "an option that shapes load or QoS" in refusal(scenario(more=more))


def test_a_change_and_an_axis_cannot_set_what_settings_cannot() -> None:
    change = "  - {name: c, change: {osd: {log_file: x}}}\n"
    assert "shapes load or QoS" in refusal(scenario() + change)
    assert "shapes load or QoS" in refusal(scenario(more='matrix: {"osd:log_file": [x, y]}'))
    axis = "matrix: {a: {one: {client: {log_file: x}}, two: {}}}"
    assert "shapes load or QoS" in refusal(scenario(more=axis))


@pytest.mark.parametrize(
    "value",
    [
        *(
            "1\\nlog_file = /etc/x",
            "1\\rlog_file = /etc/x",
            "1\\0",
            "1 # x",
            "1 ; x",
            "1\\\\",
            "[osd]",
        ),
        *(
            "$pid",
            "$cluster-$name",
            "${HOME}",
            "/etc/passwd",
            "../x",
            "'x'",
            '\\"x',
            "",
            " 1",
            "1 ",
        ),
        *("wal_dir=x", "db_log_dir=etc", "env=x", "a,db_paths=x", "\\u2028", "\\e[2J", "1" * 5000),
    ],
)
def test_no_value_of_an_option_of_ceph_leaves_its_line(value: str) -> None:
    for more in (
        f'client: {{rbd_cache: "{value}"}}',
        f'settings: {{osd: {{bluestore_rocksdb_options: "{value}"}}}}',
        f'lab: {{settings: {{osd: {{debug_osd: "{value}"}}}}}}',
        f'matrix: {{"osd:osd_max_scrubs": ["{value}", "2"]}}',
    ):
        message = refusal(scenario(more=more))
        words = ("numbers, words and lists", "a variable that is set", "the character U+0000")
        assert any(word in message for word in words)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("osd_mclock_profile", "balanced"),
        ("osd_mclock_scheduler_client_res", "0.5"),
        ("osd_max_backfills", "-1"),
        ("bluestore_throttle_bytes", "40M"),
        ("debug_osd", "1/5"),
        ("osd-op-queue", "wpq"),
        ("bluestore_rocksdb_options", "compression=kNoCompression,max_background_jobs=4"),
        ("bluestore_rocksdb_cfs", "m(3) p(3,0-12) O(3,0-13)=block_cache={type=binned_lru} L P"),
        ("bluestore_compression_mode", "none"),
        ("mgr/balancer/active", "false"),
    ],
)
def test_options_that_shape_load_are_taken_as_they_are(name: str, value: str) -> None:
    more = f"settings: {{osd: {{{json.dumps(name)}: {json.dumps(value)}}}}}"
    (option,) = parse(scenario(more=more), "s.yaml").points[0].settings
    assert (option.name, option.value) == (name.replace("-", "_"), value)


@pytest.mark.parametrize("value", ["a\nb", "a\rb", "a\0b", "a # b", "a;b", "a\\", " a", "a "])
def test_a_line_of_ceph_conf_that_would_not_say_what_was_meant_is_not_written(value: str) -> None:
    with pytest.raises(UsageError, match="one line"):
        conf_line("osd_max_scrubs", value)
    with pytest.raises(UsageError, match="option's name"):
        conf_line(value, "1")


# -- names and variables -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["-x", "../x", "a/b", "a b", "a\\nb", "", "a" * 60, "a@b", "$v"])
def test_names_of_pools_and_phases_are_plain_words(name: str) -> None:
    assert "a pool's name" in refusal(scenario(FIO.replace(" p,", f' "{name}",')))
    assert "a name of a-z" in refusal(scenario(name=name))
    assert "a name of a-z" in refusal(scenario().replace("name: load", f'name: "{name}"'))


def test_a_variable_from_the_command_line_cannot_leave_its_place() -> None:
    text = scenario(f'{FIO}, options: {{fsync: "${{v}}"}}')
    for value in ("1\nexec_prerun=id", "${HOME}", "${v}", "-1", "1 --name=x"):
        assert "fsync" in refusal(text, Choices(variables={"v": scalar(value)}))


# -- bombs ---------------------------------------------------------------------------------------


def variables(*lines: str) -> str:
    return scenario().replace('variables: {v: "1"}', "\n  ".join(("variables:", *lines)))


def text_bomb() -> str:
    """Each variable has the one before it a hundred times."""
    steps = [f'v{n}: "{f"${{v{n - 1}}}" * 100}"' for n in range(1, 9)]
    return variables(f'v0: "{"x" * 1000}"', *steps) + 'about: "${v8}"\n'


def list_bomb(use: str) -> str:
    steps = []
    for n in range(1, 9):
        before = ", ".join([f'"${{v{n - 1}}}"'] * 20)
        steps.append(f"v{n}: [{before}]")
    return variables("v0: [1, 2]", *steps) + use


def alias_bomb() -> str:
    steps = [f"v{n}: &v{n} [{', '.join([f'*v{n - 1}'] * 10)}]" for n in range(1, 10)]
    return variables("v0: &v0 [x, x]", *steps)


MANY_PHASES = "".join(f"  - {{name: w{n}, wait: {{}}}}\n" for n in range(500))
PINNED = "  - {name: w, pin: {strategy: default, exclude: "
BOMBS = {
    "variables of variables": text_bomb(),
    "a long variable often": variables(f"a: {'x' * 400_000}", f'b: "{"${a}" * 1000}"')
    + 'about: "z${b}"\n',
    "lists of lists": list_bomb('repeats: "${v8}"\n'),
    "a list of lists as CPUs": list_bomb("") + PINNED + '"${v8}"}}\n',
    "aliases of aliases": alias_bomb(),
    "brackets": scenario() + "about: " + "[" * 10_000,
    "braces": scenario() + "about: " + "{a: " * 10_000,
    "the same CPUs again and again": scenario() + PINNED + ",".join(["0-65535"] * 10_000) + "}}\n",
    "more digits than Python takes": scenario() + f"repeats: {'9' * 10_000}\n",
    "a size of many digits": scenario(FIO.replace("4K", "9" * 10_000)),
    "phases": scenario() + MANY_PHASES,
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_what_would_grow_without_bound_is_refused_at_once(bomb: str) -> None:
    assert cost(lambda: refusal(BOMBS[bomb]), 15) < 15
    tracemalloc.start()
    try:
        refusal(BOMBS[bomb])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 32 << 20
