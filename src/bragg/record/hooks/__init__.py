"""Hooks into frameworks: what they do, reported to the native core, from the moment they are imported."""
