"""What a capture holds: its chunks, its tables, and the tables of a profile that they become."""
