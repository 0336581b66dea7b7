"""What separates a lab from its host and is freed at the end: process 1 of its namespaces, commands
inside them, loop devices, cgroup limits, ports. Knows nothing about Ceph's daemons."""
