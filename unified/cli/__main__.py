"""Runs the command line where no script is installed, as the module ``unified.cli``."""

import sys

from unified.cli import main

sys.exit(main())
