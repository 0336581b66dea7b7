"""Options that scenarios may give, on real programs: fio's parser takes each, and Ceph's own tables
of options have none among them that name a file."""

import re
import subprocess

import pytest

from cephqos_base.yamlfile import parse
from cephqos_loadgen.engines.fio_options import OPTIONS, read_fio_options
from cephqos_loadgen.lab.lab import RunningLab
from cephqos_loadgen.lab.releases import find_release
from cephqos_loadgen.lab.trees import tree_path
from cephqos_loadgen.plan.ceph_options import shapes_load

BASE = (
    *("--name=job", "--ioengine=libaio", "--direct=1", "--filename=/tmp/none", "--rw=randrw"),
    *("--bs=4096", "--iodepth=8", "--size=64m", "--time_based=1", "--runtime=100"),
)
BOOLEAN = ("true", "no")
COUNT = ("16",)
PERCENT = ("0", "50", "100")
TIME = ("10s", "500ms", "1m")
# Values that stand for all that is allowed of each option.
VALUES = {
    **dict.fromkeys(
        ("randrepeat", "allrandrepeat", "norandommap", "softrandommap", "rate_ignore_thinktime"),
        BOOLEAN,
    ),
    **dict.fromkeys(
        ("serialize_overlap", "end_fsync", "zero_buffers", "refill_buffers", "scramble_buffers"),
        BOOLEAN,
    ),
    "randseed": ("7", str((1 << 63) - 1)),
    "random_generator": ("tausworthe", "tausworthe64", "lfsr"),
    "random_distribution": (
        *("random", "zipf:1.2", "zipf:1.2:0.5", "pareto:0.9", "normal:20", "zoned:60/10:40/90"),
        "zoned_abs:60/10G:40/90G",
    ),
    "percentage_random": ("100", "30,70", "10,20,30"),
    "rw_sequencer": ("sequential", "identical"),
    "offset": ("1m", "20%", "4096"),
    "bssplit": ("4k/60:64k/40", "4k/50:8k/", "4k/60:64k/40,8k/100"),
    "bsrange": ("4k-64k", "4k-8k,16k-32k"),
    "blockalign": ("4096", "4K"),
    "rate": ("10m", "10m,5m"),
    "rate_process": ("linear", "poisson"),
    "rate_cycle": ("1000",),
    "thinktime": TIME,
    "thinktime_spin": ("100us",),
    "thinktime_iotime": TIME,
    "thinktime_blocks": COUNT,
    "thinktime_blocks_type": ("complete", "issue"),
    "iodepth_batch": COUNT,
    "iodepth_batch_complete_min": ("0", "1"),
    "iodepth_batch_complete_max": ("4",),
    "iodepth_low": ("1",),
    "sync": ("none", "0", "sync", "1", "dsync"),
    "fsync": COUNT,
    "fdatasync": COUNT,
    "buffer_compress_percentage": PERCENT,
    "buffer_compress_chunk": ("4K",),
    "dedupe_percentage": PERCENT,
    "dedupe_mode": ("repeat", "working_set"),
    "dedupe_working_set_percentage": PERCENT,
    "ramp_time": TIME,
    "steadystate": ("iops:5%", "iops_slope:0.3%", "bw:5%", "bw_slope:0.3%", "iops:1000"),
    "steadystate_duration": TIME,
    "steadystate_ramp_time": TIME,
}
# What fio wants beside some of them.
BESIDE = {
    "thinktime_": ("--thinktime=1s",),
    "steadystate_": ("--steadystate=iops:5%",),
    "buffer_compress_chunk": ("--buffer_compress_percentage=50",),
}
# Options of type str, with no list of values, that scenarios may set: none names a file.
REVIEWED = frozenset((
    *(f"bluestore_cache_age_bins_{of}" for of in ("data", "kv", "kv_onode", "meta")),
    "bluestore_rocksdb_cfs", "bluestore_rocksdb_options", "filestore_rocksdb_options",
    "crimson_alien_thread_cpu_cores", "crimson_seastar_cpu_cores", "mgr/balancer/begin_time",
    "mgr/balancer/crush_compat_metrics", "mgr/balancer/end_time", "mgr/balancer/pool_ids",
    "mon_osd_down_out_subtree_limit", "mon_osd_initial_require_min_compat_client",
    "mon_osd_reporter_subtree_level", "ms_cluster_type", "ms_osd_compression_algorithm",
    "ms_public_type", "ms_type", "rbd_default_features", "rbd_qos_exclude_ops",
    "rocksdb_cache_type", "rocksdb_index_type",
))  # fmt: skip
HARMLESS_TYPES = ("int", "uint", "size", "float", "bool", "secs", "millisecs")


def fio(release: str, *options: str) -> subprocess.CompletedProcess[str]:
    """What fio of a release says to options, without running anything."""
    tree = tree_path(find_release(release))
    argv = ["chroot", str(tree), "fio", "--parse-only", *BASE, *options]
    return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)


def test_every_allowed_option_has_values_here() -> None:
    assert set(VALUES) == set(OPTIONS)


@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_fio_takes_every_allowed_option(name: str, release: str) -> None:
    beside = [word for start, words in BESIDE.items() if name.startswith(start) for word in words]
    for value in VALUES[name]:
        ((_, given),) = read_fio_options(parse(f'{name}: "{value}"', "s.yaml"))
        said = fio(release, *beside, f"--{name}={given}")
        assert said.returncode == 0, said.stdout + said.stderr
        assert said.stderr == ""


def test_fio_says_so_where_it_does_not_take_an_option(release: str) -> None:
    """Else the test above could not fail."""
    assert fio(release, "--random_distribution=odd").returncode != 0
    assert fio(release, "--no_such_option=1").returncode != 0


async def test_no_option_of_ceph_that_scenarios_may_set_names_a_file(
    shared_lab: RunningLab,
) -> None:
    client = shared_lab.client()
    try:
        names = [name for name in await client.command("config ls") if shapes_load(name)]
        assert len(names) > 500
        for name in names:
            info = await client.command("config help", key=name)
            if info["type"] not in HARMLESS_TYPES and not info.get("enum_values"):
                assert name in REVIEWED or re.fullmatch(r"debug_[a-z_]+", name), info
    finally:
        await client.close()
