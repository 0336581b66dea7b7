"""What a rule is, the thresholds and windows that it names as `@name@`, and how it becomes YAML.

Knows nothing of Ceph but the settings: what the rules are about is in the rooms above."""
