"""`cephqos advise`: what another profile, WPQ or other reservations would give. It asks what
`cephqos capacity` asks, and changes nothing.
"""
