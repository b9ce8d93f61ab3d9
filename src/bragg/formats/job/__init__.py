"""The directory of a job: a profile for each rank, and the summaries by which ranks are compared."""
