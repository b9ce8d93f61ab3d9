"""Memory that programs, or the threads of one program, use at the same time."""
