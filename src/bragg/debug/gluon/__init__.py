"""Gluon: shared memory, barriers, and what its functions mean here."""
