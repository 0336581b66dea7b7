"""The options of fio that a scenario may give: those that shape the load, each with its type.

fio has others that run commands (`exec_prerun`), write files (`write_lat_log`), read them
(`buffer_pattern`) or choose what is loaded (`filename`). So this is a list of what is allowed: a
list of what is forbidden would miss the next one. Values are checked too: none can become another
option, or be expanded by fio.
"""

from collections.abc import Callable, Mapping
from typing import Final

from cephqos_base.hints import nearest
from cephqos_base.yamlfile import Value

Reader = Callable[[Value], str]


def _integer(least: int, most: int) -> Reader:
    return lambda value: str(value.integer(least, most))


def _boolean(value: Value) -> str:
    return "1" if value.boolean() else "0"


def _size(value: Value) -> str:
    return str(value.size())


def _choice(*allowed: str) -> Reader:
    return lambda value: value.choice(allowed)


def _text(pattern: str, allowed: str) -> Reader:
    return lambda value: value.text(pattern, allowed)


def _time(value: Value) -> str:
    return value.text(r"[0-9]{1,9}(us|ms|s|m|h)?", "a whole number with us, ms, s, m or h")


_PERCENT: Final = _integer(0, 100)
_COUNT: Final = _integer(0, 1 << 30)
_NUMBER: Final = r"[0-9]{1,9}(\.[0-9]{1,9})?"
# fio has one value for reads, writes and trims, or one for each.
_UP_TO_THREE: Final = r"{0}(,{0}){{0,2}}"
_SIZE: Final = r"[0-9]{1,15}[kKmMgGtT]?"
# `4k/30:64k/70`; what the shares leave is divided between sizes without one.
_SPLIT: Final = rf"{_SIZE}/[0-9]{{0,3}}(:{_SIZE}/[0-9]{{0,3}}){{0,30}}"
# `60/10:30/20`: 60 % of the accesses go to the first 10 % of the volume (or to so many bytes).
_ZONES: Final = rf"{_NUMBER}/{_SIZE}(:{_NUMBER}/{_SIZE}){{0,30}}"

OPTIONS: Final[Mapping[str, Reader]] = {
    # which blocks
    "randrepeat": _boolean,
    "allrandrepeat": _boolean,
    "randseed": _integer(0, (1 << 63) - 1),
    "norandommap": _boolean,
    "softrandommap": _boolean,
    "random_generator": _choice("tausworthe", "tausworthe64", "lfsr"),
    "random_distribution": _text(
        rf"random|(zipf|pareto|normal):{_NUMBER}(:{_NUMBER})?|zoned(_abs)?:{_ZONES}",
        "random, zipf:1.2, pareto:0.9, normal:20, zoned:60/10:40/90 or zoned_abs:60/10G:40/90G",
    ),
    "percentage_random": _text(_UP_TO_THREE.format("(100|[0-9]{1,2})"), "0 to 100, or 30,70"),
    "rw_sequencer": _choice("sequential", "identical"),
    "offset": _text(rf"{_SIZE}|[0-9]{{1,3}}%", "a size, or a share of the volume such as 20%"),
    # how large
    "bssplit": _text(_UP_TO_THREE.format(_SPLIT), "sizes and shares such as 4k/60:64k/40"),
    "bsrange": _text(_UP_TO_THREE.format(f"{_SIZE}-{_SIZE}"), "sizes such as 4k-64k"),
    "blockalign": _size,
    # how fast
    "rate": _text(_UP_TO_THREE.format(_SIZE), "bytes per second such as 10m, or 10m,5m"),
    "rate_process": _choice("linear", "poisson"),
    "rate_cycle": _integer(1, 3_600_000),
    "rate_ignore_thinktime": _boolean,
    "thinktime": _time,
    "thinktime_spin": _time,
    "thinktime_iotime": _time,
    "thinktime_blocks": _integer(1, 1 << 30),
    "thinktime_blocks_type": _choice("complete", "issue"),
    "iodepth_batch": _integer(1, 4096),
    "iodepth_batch_complete_min": _integer(0, 4096),
    "iodepth_batch_complete_max": _integer(0, 4096),
    "iodepth_low": _integer(1, 4096),
    "serialize_overlap": _boolean,
    # when it must be on the disk
    "sync": _choice("none", "0", "sync", "1", "dsync"),
    "fsync": _COUNT,
    "fdatasync": _COUNT,
    "end_fsync": _boolean,
    # with what content
    "zero_buffers": _boolean,
    "refill_buffers": _boolean,
    "scramble_buffers": _boolean,
    "buffer_compress_percentage": _PERCENT,
    "buffer_compress_chunk": _size,
    "dedupe_percentage": _PERCENT,
    "dedupe_mode": _choice("repeat", "working_set"),
    "dedupe_working_set_percentage": _PERCENT,
    # when it counts, and when it is steady
    "ramp_time": _time,
    "steadystate": _text(
        rf"(iops|bw)(_slope)?:{_NUMBER}%?", "iops:5%, iops_slope:0.3%, bw:5% or bw_slope:0.3%"
    ),
    "steadystate_duration": _time,
    "steadystate_ramp_time": _time,
}


def read_fio_options(value: Value) -> tuple[tuple[str, str], ...]:
    """Names and values as fio gets them: `--name=value`."""
    options = []
    for name, setting in value.entries().items():
        if name not in OPTIONS:
            near = nearest(name, OPTIONS) or "bssplit"
            setting.fail(f"an option of fio that shapes the load, such as {near}", name)
        options.append((name, OPTIONS[name](setting)))
    return tuple(options)
