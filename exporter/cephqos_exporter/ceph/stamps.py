"""Moments as Ceph writes them."""

from datetime import UTC, datetime


def parse_stamp(text: str) -> float:
    """Seconds since the epoch; 0 for what has never been, which Ceph writes as a number."""
    if "-" not in text:
        return float(text)
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
