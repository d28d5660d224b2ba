"""fairseq plug-ins: ``fairseq-train DATA --user-dir fairseq_plugins --task unified_lm ...``.

Everything here translates between fairseq and :mod:`unified`; there is no mathematics. fairseq imports the modules
of ``tasks/`` and ``models/`` itself, the criterions and the optimizer are imported here.
"""

import argparse

import torch

# fairseq writes its legacy namespace into every checkpoint: the one global that loading safely must allow.
torch.serialization.add_safe_globals([argparse.Namespace])

from fairseq_plugins import (  # noqa: E402
    checkpoints,
    divergence,
    exports,
    first_updates,
    optimizer,  # noqa: F401
    precision,
    restarts,
    training_checks,
    training_lock,
    trust,
    updates,
)
from fairseq_plugins.criterions import unified_lm, unified_understanding  # noqa: E402, F401

checkpoints.install()
exports.install()
first_updates.install()
precision.install()
restarts.install()
trust.install()
training_lock.install()
training_checks.install()  # the outermost, before a folder is made or locked
updates.install()
divergence.install()
