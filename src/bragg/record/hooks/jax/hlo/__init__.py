"""The text of HLO modules, and what it tells of operations that are executed."""
