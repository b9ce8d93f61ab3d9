"""Inside the recorded process: sessions, their phases, and what the program says of itself."""
