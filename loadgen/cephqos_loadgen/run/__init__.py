"""Carries a plan out on a cluster: settings, pools, phases, recording, and the way back."""
