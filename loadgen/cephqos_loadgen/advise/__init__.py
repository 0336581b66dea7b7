"""What another profile, WPQ or other reservations would give, by what was recorded.

Pure: facts in, rows and answers out. What needs the model of the scheduler is unknown until its
error is small enough (`model_error`).
"""
