"""The lab's ceph.conf, as text from a spec."""

from typing import Final

from cephqos_loadgen.ceph_option import conf_line
from cephqos_loadgen.lab.isolation.ports import PORTS_PER_LAB
from cephqos_loadgen.lab.paths import LabPaths
from cephqos_loadgen.lab.spec import LabSpec

Sections = dict[str, dict[str, str]]

_BLOB_BYTES: Final = 65536  # bluestore_max_blob_size_* of all releases


def render_conf(spec: LabSpec, paths: LabPaths, fsid: str, port: int) -> str:
    """The whole file. `--set` options come last in their section and win."""
    sections = _defaults(spec, paths, fsid, port)
    for setting in spec.settings:
        sections.setdefault(setting.section, {})[setting.name] = setting.value
    lines: list[str] = []
    for section, options in sections.items():
        lines.append(f"[{section}]")
        lines.extend(conf_line(option, value) for option, value in options.items())
        lines.append("")
    return "\n".join(lines)


def mon_addresses(port: int) -> tuple[str, str]:
    """The monitor's v2 and v1 addresses."""
    return f"127.0.0.1:{port}", f"127.0.0.1:{port + 1}"


def _defaults(spec: LabSpec, paths: LabPaths, fsid: str, port: int) -> Sections:
    v2, v1 = mon_addresses(port)
    return {
        "global": {
            "fsid": fsid,
            "mon_host": f"[v2:{v2},v1:{v1}]",
            "public_addr": "127.0.0.1",
            "cluster_addr": "127.0.0.1",
            "ms_bind_port_min": str(port + 2),
            "ms_bind_port_max": str(port + PORTS_PER_LAB - 1),
            # Loopback only, one user: authentication is off unless asked for.
            "auth_cluster_required": spec.auth,
            "auth_service_required": spec.auth,
            "auth_client_required": spec.auth,
            **({"keyring": str(paths.keyring("$name"))} if spec.auth == "cephx" else {}),
            "admin_socket": f"{paths.sockets}/$cluster-$name.asok",
            "log_file": f"{paths.logs}/$cluster-$name.log",
            "run_dir": str(paths.sockets),
            "crash_dir": str(paths.dir / "crash"),
            # One host holds every replica.
            "osd_crush_chooseleaf_type": "0",
            "osd_pool_default_size": str(min(3, spec.osds)),
            "osd_pool_default_min_size": "1",
            "osd_pool_default_pg_num": "32",
            "osd_pool_default_pg_autoscale_mode": "off",
        },
        "mon": _mon_defaults(paths),
        "mgr": {"mgr_data": str(paths.data("$name"))},
        "osd": _osd_defaults(spec, paths),
        "client": {
            # A killed client would leave its socket behind, so clients have none.
            "admin_socket": "",
            "log_file": "",
        },
    }


def _mon_defaults(paths: LabPaths) -> dict[str, str]:
    return {
        "mon_data": str(paths.data("$name")),
        "mon_cluster_log_file": str(paths.logs / "ceph.log"),
        # The release's own list has modules that cannot load on Debian (restful).
        "mgr_initial_modules": "iostat",
        # One monitor and few maps: waiting a second for more changes to propose at once would
        # be half of the time that a lab takes to come up.
        "paxos_propose_interval": "0.05",
        "mon_allow_pool_delete": "true",
        "mon_allow_pool_size_one": "true",
        "mon_max_pg_per_osd": "2000",
        "mon_warn_on_pool_no_redundancy": "false",
        "mon_warn_on_insecure_global_id_reclaim": "false",
        "mon_warn_on_insecure_global_id_reclaim_allowed": "false",
        # The host's disk may be nearly full; that must not stop the lab's monitor.
        "mon_data_avail_warn": "2",
        "mon_data_avail_crit": "1",
    }


def _osd_defaults(spec: LabSpec, paths: LabPaths) -> dict[str, str]:
    options = {
        "osd_data": str(paths.data("$name")),
        "osd_objectstore": spec.objectstore,
        "osd_memory_target": "939524096",
        "osd_memory_cache_min": "134217728",
        # Several OSDs that measure one shared disk at the same time get wrong results. A capacity
        # can be given with `--set`.
        "osd_mclock_skip_benchmark": "true",
        # An OSD ends itself when it was marked down a sixth time in ten minutes. In a lab that is
        # what scenarios do.
        "osd_max_markdown_count": "1000",
        "osd_max_object_name_len": "256",
        "osd_max_object_namespace_len": "64",
    }
    if spec.objectstore == "filestore":
        options["osd_journal"] = str(paths.data("$name") / "journal")
        options["osd_journal_size"] = "256"
        if spec.filesystem == "btrfs":
            options["enable_experimental_unrecoverable_data_corrupting_features"] = "btrfs"
    else:
        options["bluestore_block_size"] = str(spec.osd_size)
    if spec.op_queue:
        options["osd_op_queue"] = spec.op_queue
    if spec.device_iops:
        # BlueStore writes blobs, each with one request. So a limit of requests limits bytes, and
        # mClock has to price large operations by them. 16.2 has no such option.
        bandwidth = str(spec.device_iops * (spec.request_size or _BLOB_BYTES))
        options["osd_mclock_max_sequential_bandwidth_ssd"] = bandwidth
        options["osd_mclock_max_sequential_bandwidth_hdd"] = bandwidth
    return options
