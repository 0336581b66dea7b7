"""The options of `--role probe` and the source made from them; `--cluster.*` say how to connect."""

from typing import TYPE_CHECKING, Any, Final

from cephqos_exporter.cluster import cluster_options
from cephqos_exporter.config import Option, Settings, integer, number, seconds, text, texts

if TYPE_CHECKING:
    from cephqos_exporter.probe.probe_source import ProbeSource

POOLS = texts("probe.pools", (), "Pools to probe. Required for the role probe.")
RATE = number(
    "probe.rate",
    2.0,
    "Operations per second over all pools, reads and writes. They run one at a time.",
    least=0.01,
    most=100,
    unit="operations per second",
)
SIZE = integer("probe.size", 4096, "Size of an operation, in bytes.", least=1, most=4 << 20)
OBJECTS = integer(
    "probe.objects",
    64,
    "Objects per pool. Placement spreads them over the pool's OSDs.",
    least=1,
    most=4096,
)
NAMESPACE = text(
    "probe.namespace",
    "cephqos-probe",
    "RADOS namespace of the objects. Nothing outside it is touched.",
    allowed="a name",
)
TIMEOUT = seconds(
    "probe.timeout",
    30.0,
    "Deadline in seconds of an operation. The child process that misses it is killed.",
    least=2,
    most=600,
)

OPTIONS: Final[tuple[Option[Any], ...]] = (POOLS, RATE, SIZE, OBJECTS, NAMESPACE, TIMEOUT)


def check(settings: Settings) -> None:
    """Raise the ConfigError of a setting that cannot work."""
    if not settings[POOLS]:
        raise settings.error(POOLS, "at least one pool, for --role probe")
    cluster_options.check(settings)
    if not settings[NAMESPACE]:
        raise settings.error(NAMESPACE, NAMESPACE.allowed)


def build_source(settings: Settings) -> "ProbeSource":
    """A probe that starts when it is first scraped."""
    from cephqos_exporter.probe.probe_source import ProbeSource, ProbeSpec

    spec = ProbeSpec(
        pools=tuple(settings[POOLS]),
        rate=settings[RATE],
        size=settings[SIZE],
        objects=settings[OBJECTS],
        namespace=settings[NAMESPACE],
        timeout=settings[TIMEOUT],
    )
    return ProbeSource(cluster_options.connection_of(settings), spec)
