"""What a profile says about a program: derived metrics, rooflines, comparisons."""
