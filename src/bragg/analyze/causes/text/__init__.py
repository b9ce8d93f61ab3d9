"""What the text of a program tells: where values come from, and what becomes of them."""
