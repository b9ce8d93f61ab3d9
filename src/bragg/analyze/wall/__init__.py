"""The parts of a run's wall time, and what its steady state says alone."""
