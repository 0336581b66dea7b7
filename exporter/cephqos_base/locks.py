"""Locks of open files and folders (flock). One ends with its descriptor, or with the process."""

import fcntl


def try_lock(fd: int, kind: int = fcntl.LOCK_EX) -> bool:
    """Take the lock; False if another has it."""
    try:
        fcntl.flock(fd, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_locked(fd: int) -> bool:
    """Whether another has the lock. Shared, so that two who look do not see each other."""
    return not try_lock(fd, fcntl.LOCK_SH)
