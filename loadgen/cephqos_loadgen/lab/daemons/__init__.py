"""The cluster inside a lab: ceph.conf, keyrings, and bringing monitor, manager and OSDs up."""
