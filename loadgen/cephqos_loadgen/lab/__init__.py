"""The lab: real Ceph on loopback.

`spec` says what a lab shall be, `checks` whether this machine can have it. `lab` starts and ends
one, `keeper` keeps it after the command has returned, `handle` and `faults` work on one that runs.
`releases` and `trees` are the programs of Ceph, `builds` is how such things are made once,
`paths` and `state` are the files of all labs.

    isolation   what holds a lab: process 1 of its namespaces, mounts, devices, limits, ports
    daemons     the cluster inside: its configuration, its keys, bringing it up
"""
