"""How kernels are executed: rewritten once, programs part and meet again, wait and take turns."""
