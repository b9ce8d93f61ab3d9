"""Programs and profiles that `bragg demo` shows."""
