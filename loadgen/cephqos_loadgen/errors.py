"""The error of the lab: one line that a user can act on."""

from cephqos_base.errors import CephqosError


class LabError(CephqosError):
    """A lab, or a program in it, failed although the user asked for it correctly."""
