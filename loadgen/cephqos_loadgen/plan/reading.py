"""Values of a scenario that several readers share: settings, flags, CPUs, objects, names."""

import re

from cephqos_base.errors import UsageError
from cephqos_base.units import parse_cpu_list
from cephqos_base.yamlfile import Value
from cephqos_loadgen.ceph_option import CephOption
from cephqos_loadgen.plan.ceph_options import read_ceph_option
from cephqos_loadgen.plan.parts import Objects

NAME = r"[a-z0-9][a-z0-9_-]{0,40}"
POOL_NAME = "a pool's name"
SECTION = r"global|mon|mgr|osd|(mon|mgr|osd)\.[a-z0-9]+"
CLUSTER_FLAGS = (
    *("norecover", "nobackfill", "norebalance", "noscrub", "nodeep-scrub"),
    *("noout", "noin", "nosnaptrim"),
)


def read_options(value: Value) -> tuple[CephOption, ...]:
    """`{osd: {osd_max_backfills: 4}}`; a name that ends in `?` is optional."""
    read = []
    for section, options in value.entries().items():
        if not re.fullmatch(SECTION, section):
            options.fail("a section: global, mon, mgr, osd or a daemon such as osd.0", section)
        for name, setting in options.entries().items():
            plain, text = read_ceph_option(name.removesuffix("?"), setting)
            read.append(CephOption(section, plain, text, name.endswith("?")))
    return tuple(read)


def read_flags(value: Value) -> tuple[str, ...]:
    return tuple(item.choice(CLUSTER_FLAGS) for item in value.items())


def read_cpus(value: Value) -> tuple[int, ...]:
    """CPUs as the kernel writes them; parts of the list may be empty, or all of it."""
    allowed = "CPUs such as 0,2-3"
    parts = ("" if value.is_null else value.text(r"[0-9, -]*", allowed)).split(",")
    try:
        return parse_cpu_list(",".join(part for part in parts if part.strip()))
    except UsageError:
        value.fail(allowed)


def read_objects(value: Value) -> Objects:
    table = value.table(("count", "size"), ("count", "size"))
    return Objects(table["count"].integer(1), table["size"].size())


def read_osd(value: Value) -> str:
    """`{osd: 3}`, or the last one."""
    table = value.table(("osd",))
    return table["osd"].text(r"last|\d+", "an OSD's id, or last") if "osd" in table else "last"


def read_path(value: Value) -> str:
    """A device or file. fio would take a colon for the end of one name and the start of another."""
    return value.text(r"/[A-Za-z0-9_./+-]{1,200}", "an absolute path of letters, digits and _./+-")


def read_pool_name(value: Value) -> str:
    return value.text(NAME, POOL_NAME)


def read_client_seconds(value: Value) -> float:
    """How long clients run: rados bench takes whole seconds only."""
    seconds = value.seconds(above_zero=True)
    if not seconds.is_integer():
        value.fail("whole seconds, for clients")
    return seconds


def read_integer(table: dict[str, Value], key: str, default: int, most: int) -> int:
    """From 1 to `most`, or the default where the key is not there."""
    return table[key].integer(1, most) if key in table else default
