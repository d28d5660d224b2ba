"""All readers that are attacked."""

from __future__ import annotations

from trust.fuzzing import data_sets, model_files, other_models, row_files, settings_files
from trust.fuzzing.reader import Reader

READERS: tuple[Reader, ...] = (
    *row_files.READERS,
    *data_sets.READERS,
    *settings_files.READERS,
    *model_files.READERS,
    *other_models.READERS,
)
