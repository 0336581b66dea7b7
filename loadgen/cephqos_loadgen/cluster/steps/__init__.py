"""Steps back: what undoes each change of a cluster. There are no kinds but those of `registry`.

A run that died leaves its steps in the cluster. Anyone who may write there can change them. So
each kind has its own fields and checks, none is a command of the writer's choice, and each undoes
only what is still as the run has made it.
"""
