"""What is running when the run is killed: together all kinds of changes that a run makes."""

from typing import Final

_HEAD: Final = """\
scenario: give-back
repeats: 1
pools:
  - {name: client, size: 2, pg_num: 8, images: {size: 16M, prefill: false}}
  - {name: objects, size: 1, pg_num: 8, fresh: true, objects: {count: 60, size: 16K}}
"""
_LOAD: Final = """\
  - name: load
    fio: {engine: rbd, pool: client, rw: randwrite, bs: 4K}
    until: {duration: 2s}
"""

SITUATIONS: Final = {
    "options, flags and pools": _HEAD
    + """\
settings:
  osd: {osd_mclock_profile: high_client_ops, osd_scrub_chunk_max: 7, osd_max_scrubs: 4}
  osd.1: {osd_heartbeat_grace: 31}
  mon: {mon_osd_down_out_interval: 901}
flags: [noout, nosnaptrim]
phases:
"""
    + _LOAD,
    "an OSD out and in": _HEAD
    + """\
phases:
  - {name: out, osd_out: {osd: last}}
  - {name: more, prefill: {pool: objects, objects: {count: 60, size: 16K}}}
  - {name: hold, flags: {set: [norecover, nobackfill], clear: [nosnaptrim]}}
  - {name: in, osd_in: {osd: last}}
  - {name: rest, wait: {}, until: {duration: 1s}}
  - {name: release, flags: {clear: [norecover, nobackfill]}}
""",
    "an OSD with a weight and upmaps out": _HEAD
    + """\
phases:
  - {name: out, osd_out: {osd: 0}}
  - {name: rest, wait: {}, until: {duration: 3s}}
  - {name: in, osd_in: {osd: 0}}
""",
    "queues and CPUs": _HEAD
    + """\
devices: {scheduler: mq-deadline, nr_requests: 77, read_ahead_kb: 64}
phases:
  - {name: place, pin: {strategy: by_osd, cpus_per_osd: 1}}
"""
    + _LOAD,
    "options changed in a phase, scrub": _HEAD
    + """\
settings: {osd: {osd_max_scrubs: 2}}
phases:
  - {name: change, change: {osd: {osd_max_scrubs: 6, osd_scrub_load_threshold: 9}}}
  - {name: scrub, scrub: {pool: objects}}
  - {name: again, change: {osd: {osd_max_scrubs: 8}}}
""",
    "capacity and a bench": _HEAD
    + """\
capacity: {total: 1M}
phases:
  - {name: bench, osd_bench: {total: 1M, bs: 4K}}
  - name: rados
    rados_bench: {pools: [objects], op: write, size: 16K, in_flight: 2}
    until: {duration: 2s}
""",
    "OSDs restarted": _HEAD
    + """\
settings: {osd: {osd_op_num_threads_per_shard_ssd: 3}}
phases:
"""
    + _LOAD,
    "the journal filled to its end": _HEAD
    + "settings:\n  osd:\n"
    + "".join(
        f"    {name}: {value}\n"
        for name, value in {
            "osd_scrub_chunk_max": 7,
            "osd_scrub_chunk_min": 3,
            "osd_scrub_load_threshold": 5,
            "osd_deep_scrub_stride": 262144,
            "osd_pg_max_concurrent_snap_trims": 3,
            "osd_heartbeat_grace": 21,
            "osd_client_message_cap": 300,
            "osd_max_scrubs": 4,
            "osd_scrub_priority": 4,
            "osd_recovery_op_priority": 4,
        }.items()
    )
    + "flags: [noout, nosnaptrim]\nphases:\n"
    + _LOAD,
}
# The kinds of steps that each situation writes.
KINDS: Final = {
    "options, flags and pools": ("balancer", "autoscaler", "pool", "flag", "option"),
    "an OSD out and in": ("osd", "upmaps", "flag", "pool"),
    "an OSD with a weight and upmaps out": ("osd", "upmaps"),
    "queues and CPUs": ("queue", "cpus"),
    "options changed in a phase, scrub": ("option", "pool"),
    "capacity and a bench": ("option", "pool"),
    "OSDs restarted": ("restart",),
    "the journal filled to its end": ("option",),
}
# As many steps as the last situation may keep: it reaches the end while it sets its options.
FULL: Final = "the journal filled to its end"
FULL_STEPS: Final = 14
