"""Imports fairseq without scikit-learn and scipy.stats, in 3.6 seconds instead of 6.3.

Two of its files import them: a criterion and a task that no test uses.
"""

from __future__ import annotations

import importlib
import logging
import sys
from types import ModuleType

_STANDING_IN = {
    "sklearn": ("metrics",),
    "sklearn.metrics": ("f1_score", "matthews_corrcoef"),
    "scipy.stats": ("pearsonr", "spearmanr"),
}


def import_fairseq() -> None:
    """Import it so in this process; whoever imports scikit-learn or scipy.stats afterwards gets the true ones."""
    if "fairseq" in sys.modules or _STANDING_IN.keys() & sys.modules.keys():
        return
    for name, contents in _STANDING_IN.items():
        module = sys.modules[name] = ModuleType(name)
        vars(module).update(dict.fromkeys(contents))
    silent = logging.NullHandler()
    logging.getLogger().addHandler(silent)  # else fairseq sets up a log of its own
    try:
        importlib.import_module("fairseq.tasks")
    finally:
        logging.getLogger().removeHandler(silent)
        for name in _STANDING_IN:
            del sys.modules[name]
