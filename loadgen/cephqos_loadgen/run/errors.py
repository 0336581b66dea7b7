"""What ends a run."""

from cephqos_loadgen.errors import CephqosError, UsageError


class RunError(CephqosError):
    """A run that was started properly failed."""


class SettingRefused(UsageError):
    """The cluster or a daemon does not take a setting; found before any load."""


class ClusterBusy(UsageError):
    """Another run holds the cluster, or one left it as it is."""
