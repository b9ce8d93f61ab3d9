"""What is said to people, in the terminal and on pages alike: labels, names, units, sentences."""
