"""Whom an address stands for: what one host can have many of counts as one."""

from ipaddress import IPv6Address, ip_address


def network_of(address: str) -> str:
    """The address; of IPv6 its /64 network, of loopback all of 127.0.0.0/8."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped is None:
            return parsed.exploded[:19]
        parsed = parsed.ipv4_mapped
    return "127.0.0.0" if parsed.is_loopback else str(parsed)
