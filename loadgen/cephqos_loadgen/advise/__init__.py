"""`cephqos advise`: what another profile, WPQ or other reservations would give.

All of it is arithmetic with recorded figures, without input or output: `facts` in; `candidates` are
what could be set, `outcome` is what each would give, `goals` searches one that gives what the user
asks for, and `text` writes the answer. Figures that only a model of the scheduler could give are
said to be unknown, with the error of that model (`model_error`).
"""
