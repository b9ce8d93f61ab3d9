"""What Proton would have written: its view of a profile, its files."""
