"""Every option of the exporter: a flag, an environment variable and a key of the file in one."""

from typing import Any, Final

from cephqos_exporter.ceph.discovery import DEFAULT_PATTERNS, KINDS
from cephqos_exporter.config import Option, choice, choices, flag, integer, seconds, text, texts

# Above 9090-9999, the range of Prometheus' list of default ports, where 9128 is another Ceph
# exporter's; 9283 and 9926 are Ceph's own.
DEFAULT_PORT: Final = 10130

ROLES: Final = ("osd", "cluster", "probe")

LISTEN_ADDRESS = texts(
    "web.listen-address",
    (f":{DEFAULT_PORT}",),
    "Address to listen on; repeat for more than one.",
    allowed="addresses such as :10130, 127.0.0.1:10130 or [::1]:10130",
)
SYSTEMD_SOCKET = flag(
    "web.systemd-socket",
    False,
    "Listen on the sockets that systemd passes, instead of the addresses.",
)
WEB_CONFIG = text(
    "web.config.file", "", "File that configures TLS and authentication.", allowed="a path"
)
TELEMETRY_PATH = text("web.telemetry-path", "/metrics", "HTTP path of the metrics.")
DISABLE_OWN_METRICS = flag(
    "web.disable-exporter-metrics", False, "Leave out the process metrics of the exporter."
)
MAX_REQUESTS = integer(
    "web.max-requests",
    40,
    "Scrapes served at the same time. An address that has none under way is still served, up to "
    "twice as many. 0: no limit.",
    least=0,
    most=100_000,
)

LOG_LEVEL = choice(
    "log.level",
    "info",
    "Log messages of this severity and above.",
    ("debug", "info", "warn", "error"),
)
LOG_FORMAT = choice("log.format", "logfmt", "Format of the log.", ("logfmt", "json"))

ROLE = choices(
    "role",
    ("osd",),
    "What to report: osd, the OSDs of this host; cluster, scrub and recovery by pool "
    "(run it once per cluster); probe, the latency that a client sees.",
    ROLES,
)

SOCKETS = texts(
    "discovery.sockets",
    DEFAULT_PATTERNS,
    "Directories or patterns of admin sockets; repeat for more than one.",
    allowed="absolute paths of directories or patterns such as /run/ceph/*.asok",
)
DAEMONS = choices("discovery.daemons", ("osd",), "Kinds of daemons to report.", KINDS)

TIMEOUT = seconds(
    "scrape.timeout",
    10.0,
    "Deadline in seconds of a scrape without X-Prometheus-Scrape-Timeout-Seconds.",
    least=0.05,
    most=600,
)
TIMEOUT_OFFSET = seconds(
    "scrape.timeout-offset",
    0.5,
    "Seconds to subtract from the timeout that Prometheus sends, for writing and transfer.",
    most=60,
)

MAX_SERIES = integer(
    "scrape.max-series",
    20_000,
    "Series of one daemon at most. Collectors that would exceed it are left out.",
    least=100,
    most=10_000_000,
)

PROC = text("path.procfs", "/proc", "Where the host's procfs is mounted.", allowed="a path")
SYS = text("path.sysfs", "/sys", "Where the host's sysfs is mounted.", allowed="a path")
DEV = text("path.dev", "/dev", "Where the host's device files are.", allowed="a path")

CORE: Final[tuple[Option[Any], ...]] = (
    *(LISTEN_ADDRESS, SYSTEMD_SOCKET, WEB_CONFIG, TELEMETRY_PATH, DISABLE_OWN_METRICS),
    *(MAX_REQUESTS, LOG_LEVEL, LOG_FORMAT, ROLE, SOCKETS, DAEMONS, TIMEOUT, TIMEOUT_OFFSET),
    *(MAX_SERIES, PROC, SYS, DEV),
)
