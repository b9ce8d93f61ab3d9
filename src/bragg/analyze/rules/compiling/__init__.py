"""Rules about compilers and autotuners that work again and again, or on parts of what they could see."""
