"""Perfetto traces, written: of one profile, or of the ranks of a job."""
