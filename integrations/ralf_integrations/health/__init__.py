"""How full the sessions of a project are, where they stand, and what to do about it: for a person, or for an agent that
directs others. Looks only; `look.nudge` alone leaves something.
"""
