"""Rules about bytes that move without being computed with: copies, conversions of type and layout, fills."""
