"""Work that is done again, though its result is known or could be had for all at once."""
