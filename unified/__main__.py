"""Runs the command ``unified`` as ``python -m unified``, where no script is installed."""

import sys

from unified.cli import main

sys.exit(main())
