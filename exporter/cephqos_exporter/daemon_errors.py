"""What the exporter raises on purpose while it scrapes.

A `DaemonError` costs that daemon's samples and nothing else. What an operator can put right is a
`ConfigError` of cephqos_base; who speaks to monitors or listens has errors of its own beside it.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from cephqos_base.errors import CephqosError

if TYPE_CHECKING:
    from cephqos_exporter.families import Family


class ExporterError(CephqosError):
    """The root of all of them."""


class SourceUnavailable(ExporterError):
    """A source of a scrape has no figures; `families` say why, and what it has cost."""

    def __init__(self, reason: str, families: "Sequence[Family]" = ()) -> None:
        super().__init__(reason)
        self.families = families


class CommandRefused(ExporterError):
    """A command outside the read-only list was about to be sent. Nothing was sent."""


class DaemonError(ExporterError):
    """A daemon did not give what was asked for; `reason` is a label value of cephqos_daemon_up."""

    reason: ClassVar[str] = "error"
    pid: int | None = None  # of the daemon, if it was connected to


class SocketGone(DaemonError):
    """The socket's file is not there any more."""

    reason = "gone"


class ConnectionRefused(DaemonError):
    """The socket's file is there without a listener: the daemon died without removing it."""

    reason = "refused"


class PermissionMissing(DaemonError):
    """Connecting needs write permission on the socket."""

    reason = "permission"


class Busy(DaemonError):
    """The daemon's queue of waiting connections stayed full."""

    reason = "busy"


class DescriptorsMissing(DaemonError):
    """The exporter had no file descriptor left to ask with: its limit is too low for this host."""

    reason = "descriptors"


class TimedOut(DaemonError):
    """No whole answer before the deadline."""

    reason = "timeout"


class ClosedEarly(DaemonError):
    """The connection ended before the announced length had come."""

    reason = "closed"


class TooLarge(DaemonError):
    """The announced length is above the cap."""

    reason = "too_large"


class Malformed(DaemonError):
    """The answer does not follow the protocol, or is not what the command returns."""

    reason = "malformed"


class ErrorReply(DaemonError):
    """The daemon answered with an error."""

    reason = "failed"


class UnknownCommand(DaemonError):
    """This release of the daemon does not have the command."""

    reason = "unknown_command"
