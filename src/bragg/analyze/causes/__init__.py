"""What rules judge by: facts of a profile, what it must have, and the numbers that are compared with."""
