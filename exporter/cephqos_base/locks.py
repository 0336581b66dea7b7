"""Locks of open files and folders (flock). One ends with its descriptor, or with the process."""

import fcntl


def try_lock(fd: int) -> bool:
    """Take the lock; False if another has it."""
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_locked(fd: int) -> bool:
    """Whether another has the lock. Shared, so that two who look do not see each other."""
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False
