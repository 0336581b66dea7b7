"""Packets that a real kernel drops: TCP sends them again, and the exporter says so."""

import subprocess
import sys
from typing import Final

_TRANSFER: Final = """
import socket, subprocess, threading, time
from cephqos_exporter.collectors.host import HostCollector

def segments():
    families = {family.name: family for family in HostCollector().finish()}
    return [value for _, _, value in families["cephqos_host_tcp_segments_total"].samples]

def share_sent_again():
    before = segments()
    with socket.create_connection(server.getsockname()) as client:
        until = time.monotonic() + 4
        while time.monotonic() < until:
            client.sendall(bytes(4096))
            time.sleep(0.0005)
    sent, again = (now - then for now, then in zip(segments(), before))
    return again / sent

def swallow():
    while True:
        connection, _ = server.accept()
        while connection.recv(65536):
            pass

server = socket.create_server(("127.0.0.1", 0))
threading.Thread(target=swallow, daemon=True).start()
print(share_sent_again())
tbf = "tc qdisc add dev lo root tbf rate 10mbit burst 10k limit 12k"
subprocess.run(tbf.split(), check=True)
print(share_sent_again())
"""


def test_segments_that_a_full_queue_drops_are_sent_again() -> None:
    """In a network of its own, whose first process is this one."""
    up = 'ip link set lo up && ip link set lo mtu 1500 && exec "$0" -c "$1"'
    said = subprocess.run(
        ["unshare", "-n", "-p", "-f", "--mount-proc", "sh", "-c", up, sys.executable, _TRANSFER],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    ).stdout
    well, dropping = map(float, said.split())
    assert well < 0.001
    assert dropping > 0.003
