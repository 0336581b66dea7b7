"""`cephqos advise`: what another profile, WPQ or other reservations would give.

Arithmetic with recorded figures (`facts`): nothing here reads or writes. `candidates` are what
could be set, and `outcome` is what each gives. `goals` searches one that gives what the user asks
for, and `text` writes the answer. Throughput, latencies and recovery time are not predicted.
"""
