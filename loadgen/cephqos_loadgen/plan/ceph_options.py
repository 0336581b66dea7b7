"""Which options of Ceph a scenario may set.

Options that shape load and QoS are allowed, by family. Those that name files, folders, programs,
plugins, addresses or keys are not, nor those that inject faults: a scenario from others must not
make daemons or clients load a library or write a log where it wants. Values are numbers, words
and lists of them; none can leave its line or be expanded.
"""

import re
from typing import Final

from cephqos_base.yamlfile import Value

_FAMILIES: Final = {
    "bdev_", "bluefs_", "bluestore_", "crimson_", "debug_", "filestore_", "journal_",
    "librados_", "mgr_stats_", "mgr_tick_", "mon_max_", "mon_osd_", "mon_pg_", "mon_target_",
    "mon_warn_", "ms_", "objecter_", "osd_", "paxos_", "rados_", "rbd_", "rocksdb_",
    "seastore_", "throttler_",
}  # fmt: skip
# Managers' modules that move data while a run goes on.
_MODULES: Final = ("mgr/balancer/", "mgr/pg_autoscaler/")
# Parts of names that are refused: such options name things outside the cluster, or break it.
_FOREIGN: Final = frozenset((
    "addr", "address", "annex", "bind", "class", "cmd", "command", "coremask", "create", "debug",
    "device", "devs", "dir", "dpdk", "extblkdev", "fail", "file", "force", "hook", "host",
    "hugepages", "inject", "interface", "ip", "journal", "key", "keyring", "kvbackend", "location",
    "mkfs", "mode", "namespace", "network", "path", "plugin", "plugins", "pool", "preallocated",
    "rdma", "rollback", "sock", "socket", "spdk", "uri", "url", "user", "uuid",
))  # fmt: skip
# Options with such a part that are harmless all the same.
_HARMLESS: Final = frozenset((
    "bluestore_compression_mode", "ms_osd_compress_mode", "osd_journal_size",
    "osd_mclock_force_run_benchmark_on_init", "osd_pool_default_min_size",
    "osd_pool_default_pg_autoscale_mode", "osd_pool_default_pg_num", "osd_pool_default_size",
))  # fmt: skip
# Options without such a part that are refused: these of the kernel's RBD client can name anything.
_HARMFUL: Final = frozenset(("rbd_default_map_options",))
# Folders and files of a daemon: `osd_data`, `osd_journal`.
_DATA: Final = re.compile(r"[a-z]+_(data|journal)")
_NAME: Final = re.compile(r"[a-z][a-z0-9_]{1,80}")
_MODULE_NAME: Final = re.compile(r"mgr/[a-z_]+/[a-z0-9_]{1,60}")
# `40M`, `0.5`, `balanced`, `1/5`, `max_background_jobs=4,compression=kNoCompression`
_VALUE: Final = re.compile(r"-?[A-Za-z0-9]([A-Za-z0-9_.,:+=%(){} -]{0,2000}[A-Za-z0-9_%)}])?")
_LOG_LEVELS: Final = re.compile(r"[0-9]{1,2}/[0-9]{1,2}")
_NAMES_A_FILE: Final = re.compile(r"(dir|path|file|uri|env|url)[a-z_]*=")
_ALLOWED_NAMES: Final = (
    "an option that shapes load or QoS, such as osd_mclock_profile; none that names files, "
    "programs, plugins, addresses or keys"
)
_ALLOWED_VALUES: Final = "numbers, words and lists of them; no paths, quotes, comments or $"


def read_ceph_option(name: str, value: Value) -> tuple[str, str]:
    """Name, with underscores, and value."""
    plain = name if name.startswith("mgr/") else name.replace("-", "_").replace(" ", "_")
    if not shapes_load(plain):
        value.fail(_ALLOWED_NAMES, name)
    text = value.text(allowed=_ALLOWED_VALUES)
    pattern = _LOG_LEVELS if "/" in text else _VALUE
    if not pattern.fullmatch(text) or _NAMES_A_FILE.search(text.lower()):
        value.fail(_ALLOWED_VALUES)
    return plain, text


def shapes_load(name: str) -> bool:
    """Whether a scenario may set this option."""
    if name.startswith(_MODULES):
        return bool(_MODULE_NAME.fullmatch(name))
    if name in _HARMLESS:
        return True
    if name in _HARMFUL:
        return False
    family = next((prefix for prefix in _FAMILIES if name.startswith(prefix)), None)
    if family is None or not _NAME.fullmatch(name) or _DATA.fullmatch(name):
        return False
    parts = name.removeprefix(family).split("_")
    return parts != [""] and _FOREIGN.isdisjoint(parts)
