"""Takes hold of the cluster and gives it back: connection, lock, journal of undo steps, settings,
background work, capacities, device queues, upmaps. Whatever changes the cluster first pushes the
step that undoes it into the journal. `run.session` is the order in which all of it happens.
"""
