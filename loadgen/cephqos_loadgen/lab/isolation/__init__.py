"""What holds a lab apart from its host and frees it at the end: process 1 of its namespaces,
commands run inside them, loop devices, cgroup limits, ports. Knows nothing of Ceph's daemons."""
