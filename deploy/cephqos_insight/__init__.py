"""Questions about a cluster, answered from a Prometheus or an archive: `cephqos who` and `blame`,
`capacity` and `advise`. Nothing here is a check: those are in `cephqos_doctor`."""
