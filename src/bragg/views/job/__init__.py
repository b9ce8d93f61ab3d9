"""Jobs of many ranks as text."""
