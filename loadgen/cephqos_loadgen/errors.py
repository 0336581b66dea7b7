"""What can go wrong in the lab, as one line that a user can act on."""

from cephqos_base.errors import CephqosError as CephqosError
from cephqos_base.errors import UsageError as UsageError


class LabError(CephqosError):
    """A lab that was asked for properly failed."""
