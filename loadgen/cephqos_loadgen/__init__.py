"""The cephqos lab (real Ceph on loopback) and the load generator that tests Ceph's reservations."""
