"""Numbers and blocks of them: types, rounding, operators, functions, reductions, products."""
