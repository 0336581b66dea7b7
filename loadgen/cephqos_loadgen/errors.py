"""What can go wrong in the lab and the load generator, as one line that a user can act on."""


class CephqosError(Exception):
    """Base of all errors meant for the user: one line, and an exit status."""

    exit_status = 1


class UsageError(CephqosError):
    """The request cannot be served: bad option, missing tool, too little of something. Exit 2."""

    exit_status = 2


class LabError(CephqosError):
    """A lab that was asked for properly failed."""
