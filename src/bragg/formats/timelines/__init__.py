"""Slices, for the formats that have them: as columns, as lanes, what they add up to, and the call paths above them."""
