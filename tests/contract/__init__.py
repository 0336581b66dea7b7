"""What the exporter must show of every Ceph release: see README.md in this folder."""
