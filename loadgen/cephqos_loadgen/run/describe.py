"""What phases do, in words: for plans and for whoever reads them."""

from cephqos_loadgen.scenario import model

_ENGINES = {
    "rbd": "librbd",
    "krbd": "the kernel's RBD",
    "nbd": "QEMU's block layer",
    "rados": "librados",
}
_BENCH = {"write": "writes", "seq": "sequential reads", "rand": "random reads"}


def duration(seconds: float) -> str:
    """1 h 5 min, 3 min 20 s, 2 min, 12 s."""
    whole = round(seconds)
    if whole >= 3600:
        parts = ((whole // 3600, "h"), (whole % 3600 // 60, "min"))
    else:
        parts = ((whole // 60, "min"), (whole % 60, "s"))
    return " ".join(f"{number} {unit}" for number, unit in parts if number) or "0 s"


def size(value: float) -> str:
    """512 B, 17.6 MiB, 1.95 TiB."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.3g} {unit}"
        value /= 1024
    return f"{value:.3g} TiB"


def count(number: int, what: str) -> str:
    """1 image, 10,000,000 objects."""
    return f"{number:,} {what}{'s' if number != 1 else ''}"


def objects(found: model.Objects) -> str:
    return f"{count(found.count, 'object')} of {size(found.size)}"


def images(found: model.Images) -> str:
    filled = "written through once" if found.prefill else "left empty"
    return f"{count(found.count, 'image')} of {size(found.size)}, {filled}"


def action(what: model.Action) -> str:
    """One line."""
    match what:
        case model.Fio():
            return _fio(what)
        case model.RadosBench():
            load = f"{_BENCH[what.op]} of {size(what.object_size)}"
            instances = count(len(what.pools), "instance")
            return f"rados bench, {instances}: {load}, {what.in_flight} in flight in all"
        case model.Prefill():
            return f"{objects(what.objects)} into pool {what.pool}"
        case model.Scrub():
            return f"{'deep scrub' if what.deep else 'scrub'} of pool {what.pool}"
        case model.OsdBench():
            return f"bench of each OSD, {size(what.total)} in writes of {size(what.block_size)}"
        case _:
            return _change(what)


def _fio(what: model.Fio) -> str:
    where = f"pool {what.pool}" if what.pool else what.path
    words = [f"{what.rw} of {size(what.block_size)}"]
    if what.sweep:
        depths = " ".join(map(str, what.sweep.depths))
        words.append(f"depths {depths}, each for {duration(what.sweep.dwell)}")
    elif what.search:
        words.append(f"the depth whose {_latency(what.search)} is {what.search.target * 1e3:g} ms")
    else:
        words.append(f"depth {what.depth}")
    if what.engine in ("rbd", "krbd", "nbd"):
        words.append(count(what.volumes, "volume"))
    if what.clients > 1:
        words.append(count(what.clients, "client"))
    if what.engine == "nbd":
        words.append(f"cache {what.cache}")
    words += [f"{name} {value}" for name, value in what.options]
    return f"fio, {_ENGINES.get(what.engine, what.engine)} on {where}: {', '.join(words)}"


def _latency(search: model.Search) -> str:
    return "mean latency" if search.percentile is None else f"p{search.percentile:g}"


def _change(what: model.Action) -> str:
    match what:
        case model.OsdOut():
            return f"OSD {what.osd} down and out"
        case model.OsdIn():
            return f"OSD {what.osd} up and in"
        case model.Flags():
            changes = [f"set {flag}" for flag in what.set] + [f"unset {f}" for f in what.clear]
            return ", ".join(changes)
        case model.Settle():
            return f"wait until all is active{' and clean' if what.clean else ''}"
        case model.Change():
            return ", ".join(f"{o.section} {o.name} = {o.value}" for o in what.settings)
        case model.Pin():
            return f"OSDs pinned, {count(what.cpus_per_osd, 'CPU')} each, strategy {what.strategy}"
        case _:
            return "watch"
