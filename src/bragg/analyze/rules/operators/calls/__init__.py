"""Calls instead of which others need less work: of lookups and sums, and of linear algebra."""
