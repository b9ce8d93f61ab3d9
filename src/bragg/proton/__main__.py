"""`python -m bragg.proton`: the command line of Proton."""

from bragg.proton.proton import main

main()
