"""`cephqos capacity`: what each OSD is configured for, and what it was seen to deliver.

It is part of the doctor because it asks what the doctor asks: a Prometheus and, if named, the
cluster. It changes no setting, so it needs no journal.
"""
