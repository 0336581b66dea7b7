"""Takes hold of the cluster and gives it back: connection, lock, journal of undo steps, settings,
pools, background work, device queues. Whatever changes the cluster pushes the step that undoes it
into the journal first. `session` is the order in which all of it happens.
"""
