"""Text for people, in the terminal and on pages: labels, names, units, sentences."""
