"""Where the exporter listens: written addresses, and sockets that systemd hands over."""

import socket

import pytest

from cephqos_exporter.web.addresses import listen_on, split_address, systemd_sockets


@pytest.mark.parametrize(
    ("address", "parts"),
    [
        (":10130", ("", 10130)),
        ("127.0.0.1:0", ("127.0.0.1", 0)),
        ("[::1]:80", ("::1", 80)),
        ("localhost:80", ("localhost", 80)),
    ],
)
def test_addresses_are_read_as_go_reads_them(address: str, parts: tuple[str, int]) -> None:
    assert split_address(address) == parts


@pytest.mark.parametrize("address", ["", "10130", "::1:80", "a:b", "a:70000", "vsock://:9100"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ValueError):
        split_address(address)


def test_all_addresses_means_both_families() -> None:
    (sock,) = listen_on([":0"])
    hosts = ("127.0.0.1", "::1") if socket.has_dualstack_ipv6() else ("127.0.0.1",)
    with sock:
        for host in hosts:
            socket.create_connection((host, sock.getsockname()[1]), timeout=5).close()


def test_sockets_meant_for_another_process_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LISTEN_FDS", "1")
    monkeypatch.setenv("LISTEN_PID", "1")
    assert systemd_sockets() == []
