"""Lets ``python -m`` run the command ``unified``, where no script is installed."""

import sys

from unified.cli import main

sys.exit(main())
