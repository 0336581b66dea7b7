"""The cephqos lab and load generator: real Ceph on loopback, and load that puts its promises to the test."""
