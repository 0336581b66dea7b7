"""What `--role cluster` reports: scrub and recovery of the whole cluster, pool by pool."""
