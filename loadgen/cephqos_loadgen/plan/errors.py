"""What ends a run, each kind with an exit status of its own (docs/measure/index.md).

A UsageError of any kind that comes before the run has changed anything refuses it: no archive, no
lock, no lab is left. What comes later is archived as failed.
"""

from cephqos_base.errors import CephqosError, UsageError


class RunError(CephqosError):
    """A run that was started properly failed."""


class ClusterAway(RunError):
    """The monitors did not answer for as long as a command is tried."""


class HostLacks(UsageError):
    """A program, a Python module, room on a disk: something that this host would need."""

    exit_status = 3


class ClusterUnfit(UsageError):
    """The cluster cannot be reached, is not the named one, or is not clean."""

    exit_status = 4


class ClusterBusy(UsageError):
    """Another run holds the cluster, or one left it as it is."""

    exit_status = 5


class SettingRefused(UsageError):
    """The cluster or a daemon does not take a setting; found before any load."""

    exit_status = 6


class NotRestored(RunError):
    """The cluster is not as it was; the commands that make it so are printed and archived."""

    exit_status = 7
