"""The ranks of a job compared: which one the others wait for, since when, and why."""
