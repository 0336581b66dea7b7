"""Reads what phases do: one function per kind of phase."""

import re
from collections.abc import Callable

from cephqos_base.units import parse_cpu_list
from cephqos_loadgen.scenario import model
from cephqos_loadgen.scenario.source import Value

NAME = r"[a-z0-9][a-z0-9_-]{0,40}"
OSD = r"last|\d+"
SECTION = r"global|mon|mgr|osd|(mon|mgr|osd)\.[a-z0-9]+"
CLUSTER_FLAGS = (
    "norecover",
    "nobackfill",
    "norebalance",
    "noscrub",
    "nodeep-scrub",
    "noout",
    "noin",
    "nosnaptrim",
)


def read_options(value: Value) -> tuple[model.Option, ...]:
    """`{osd: {osd_max_backfills: 4}}`; a name that ends in `?` is optional."""
    found = []
    for section, options in value.entries().items():
        options_of = options.entries()
        if not _matches(SECTION, section):
            options.fail("a section: global, mon, mgr, osd or a daemon such as osd.0", section)
        for name, setting in options_of.items():
            text = setting.text()
            plain = name.removesuffix("?").replace("-", "_")
            found.append(model.Option(section, plain, text, name.endswith("?")))
    return tuple(found)


def read_flags(value: Value) -> tuple[str, ...]:
    return tuple(item.choice(CLUSTER_FLAGS) for item in value.items())


def read_cpus(value: Value) -> tuple[int, ...]:
    return parse_cpu_list(value.text(r"\d+(-\d+)?(,\d+(-\d+)?)*", "CPUs such as 0,2-3"))


def read_objects(value: Value) -> model.Objects:
    table = value.table(("count", "size"), ("count", "size"))
    return model.Objects(table["count"].integer(1), table["size"].size())


_FIO_KEYS = (
    "engine",
    "pool",
    "rw",
    "bs",
    "depth",
    "volumes",
    "clients",
    "path",
    "size",
    "cache",
    "cpus",
    "rate_iops",
    "read_percent",
    "options",
    "sweep",
    "search",
)
# What the load generator sets itself; scenarios that set it too would break the recording.
_FIO_OWN = ("output", "output-format", "status-interval", "ioengine", "runtime", "time_based")


def read_fio(value: Value) -> model.Fio:
    table = value.table(_FIO_KEYS, ("engine", "rw", "bs"))
    engine = table["engine"].choice(model.FIO_ENGINES)
    needs = "path" if engine in ("libaio", "io_uring") else "pool"
    if needs not in table:
        value.fail(f"the key {needs!r}, which engine {engine} needs", "none")
    if engine == "rados" and "size" not in table:
        value.fail("the key 'size' (bytes per client), which engine rados needs", "none")
    clients = _integer(table, "clients", 1, 64)
    volumes = _integer(table, "volumes", 1, 256)
    if engine in ("rbd", "krbd", "nbd") and volumes % clients:
        value.fail("as many volumes for each client", f"{volumes} volumes, {clients} clients")
    sweep = read_sweep(table["sweep"]) if "sweep" in table else None
    search = read_search(table["search"]) if "search" in table else None
    if sweep and search:
        table["search"].fail("sweep or search, not both", "both")
    return model.Fio(
        engine=engine,
        rw=table["rw"].choice(model.RW),
        block_size=table["bs"].size(512),
        depth=_integer(table, "depth", 1, 4096),
        pool=table["pool"].text(NAME, "a pool's name") if "pool" in table else "",
        volumes=volumes,
        clients=clients,
        path=table["path"].text(r"/.+", "an absolute path") if "path" in table else "",
        size=table["size"].size() if "size" in table else None,
        cache=table["cache"].choice(model.QEMU_CACHES) if "cache" in table else "none",
        cpus=read_cpus(table["cpus"]) if "cpus" in table else (),
        rate_iops=table["rate_iops"].integer(1) if "rate_iops" in table else None,
        read_percent=table["read_percent"].integer(0, 100) if "read_percent" in table else None,
        options=_fio_options(table["options"]) if "options" in table else (),
        sweep=sweep,
        search=search,
    )


def _fio_options(value: Value) -> tuple[tuple[str, str], ...]:
    found = []
    for name, setting in value.entries().items():
        if name in _FIO_OWN or not _matches(r"[a-z][a-z0-9_]*", name):
            setting.fail(f"an option of fio other than {', '.join(_FIO_OWN)}", name)
        found.append((name, setting.text()))
    return tuple(found)


def read_sweep(value: Value) -> model.Sweep:
    table = value.table(("depths", "dwell", "stop"), ("depths", "dwell"))
    stop = table["stop"].table(("dispersion", "latency")) if "stop" in table else {}
    return model.Sweep(
        depths=tuple(item.integer(1, 4096) for item in table["depths"].items()),
        dwell=table["dwell"].seconds(),
        dispersion=stop["dispersion"].number(0.01, 100) if "dispersion" in stop else None,
        latency=stop["latency"].seconds() if "latency" in stop else None,
    )


def read_search(value: Value) -> model.Search:
    table = value.table(
        ("target", "percentile", "least", "most", "dwell"), ("target", "most", "dwell")
    )
    percentile = table["percentile"].choice(model.PERCENTILES) if "percentile" in table else None
    return model.Search(
        target=table["target"].seconds(),
        percentile=float(percentile) if percentile else None,
        least=_integer(table, "least", 1, 4096),
        most=table["most"].integer(1, 4096),
        dwell=table["dwell"].seconds(),
    )


def read_rados_bench(value: Value) -> model.RadosBench:
    table = value.table(
        ("pools", "op", "size", "in_flight", "cpus"), ("pools", "op", "size", "in_flight")
    )
    op = table["op"].choice(("write", "seq", "rand"))
    pools = tuple(item.text(NAME, "a pool's name") for item in table["pools"].items())
    return model.RadosBench(
        pools=pools,
        op="write" if op == "write" else "seq" if op == "seq" else "rand",
        object_size=table["size"].size(1),
        in_flight=table["in_flight"].integer(len(pools), 65536),
        cpus=read_cpus(table["cpus"]) if "cpus" in table else (),
    )


def read_prefill(value: Value) -> model.Prefill:
    table = value.table(("pool", "objects"), ("pool", "objects"))
    return model.Prefill(table["pool"].text(NAME, "a pool's name"), read_objects(table["objects"]))


def read_scrub(value: Value) -> model.Scrub:
    table = value.table(("pool", "deep"), ("pool",))
    deep = table["deep"].boolean() if "deep" in table else True
    return model.Scrub(table["pool"].text(NAME, "a pool's name"), deep)


def _osd(value: Value) -> str:
    table = value.table(("osd",))
    return table["osd"].text(OSD, "an OSD's id, or last") if "osd" in table else "last"


def read_osd_out(value: Value) -> model.OsdOut:
    return model.OsdOut(_osd(value))


def read_osd_in(value: Value) -> model.OsdIn:
    return model.OsdIn(_osd(value))


def read_flags_phase(value: Value) -> model.Flags:
    table = value.table(("set", "clear"))
    set_ = read_flags(table["set"]) if "set" in table else ()
    clear = read_flags(table["clear"]) if "clear" in table else ()
    if not set_ and not clear:
        value.fail("flags to set or to clear", "none")
    return model.Flags(set_, clear)


def read_settle(value: Value) -> model.Settle:
    table = value.table(("clean",))
    return model.Settle(table["clean"].boolean() if "clean" in table else True)


def read_change(value: Value) -> model.Change:
    return model.Change(read_options(value))


def read_osd_bench(value: Value) -> model.OsdBench:
    table = value.table(("total", "bs"), ("total", "bs"))
    return model.OsdBench(table["total"].size(), table["bs"].size())


def read_wait(value: Value) -> model.Wait:
    value.table(())
    return model.Wait()


def read_pin(value: Value) -> model.Pin:
    table = value.table(("strategy", "cpus_per_osd", "apply"), ("strategy",))
    strategy = table["strategy"].choice(("default", "by_osd", "by_socket"))
    return model.Pin(
        strategy="default"
        if strategy == "default"
        else "by_osd"
        if strategy == "by_osd"
        else "by_socket",
        cpus_per_osd=_integer(table, "cpus_per_osd", 1, 64),
        apply=table["apply"].boolean() if "apply" in table else True,
    )


ACTIONS: dict[str, Callable[[Value], model.Action]] = {
    "fio": read_fio,
    "rados_bench": read_rados_bench,
    "prefill": read_prefill,
    "scrub": read_scrub,
    "osd_out": read_osd_out,
    "osd_in": read_osd_in,
    "flags": read_flags_phase,
    "settle": read_settle,
    "change": read_change,
    "osd_bench": read_osd_bench,
    "wait": read_wait,
    "pin": read_pin,
}


def _integer(table: dict[str, Value], key: str, default: int, most: int) -> int:
    return table[key].integer(1, most) if key in table else default


def _matches(pattern: str, text: str) -> bool:
    return re.fullmatch(pattern, text) is not None
