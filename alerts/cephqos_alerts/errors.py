"""What can be wrong with what an operator wrote."""

from cephqos_base.errors import UsageError


class SpecError(UsageError):
    """An SLO file or a setting cannot be used; one line says where and why."""
