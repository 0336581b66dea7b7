"""The lab: real Ceph on loopback; `Lab` and `LabSpec` are in `lab.lab` and `lab.spec`."""
