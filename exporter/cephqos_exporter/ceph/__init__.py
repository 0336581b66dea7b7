"""Talking to Ceph: admin sockets, the daemons of a host, the state of a cluster."""
