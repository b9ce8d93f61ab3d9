"""Two profiles, or two sets of runs, side by side; and whether a difference is more than noise."""
