"""What can go wrong in the lab, as one line that a user can act on."""

from cephqos_base.errors import CephqosError


class LabError(CephqosError):
    """A lab that was asked for properly failed."""
