"""`python -m bragg` is `bragg`."""

import sys

from bragg.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
