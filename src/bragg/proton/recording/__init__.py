"""Sessions as Proton's functions see them: settings, numbers, open scopes, values of metrics."""
