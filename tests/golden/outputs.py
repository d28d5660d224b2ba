"""What trained models write and predict."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from unified import load

PROMPTS = ("the red house", "a green tree runs", "new river")
SOURCES = ("w1 w2 w3 w4", "w5 . w6 w7", "w29 w3 w11 w2 w8 w1")


def texts(checkpoint: Path, folder: Path) -> dict[str, list[str]]:
    """What a model writes by greedy search, by beam search and by draws: for sources, or behind prompts."""
    handle = load(checkpoint, data=folder)
    starts = SOURCES if folder.name == "pairs" else PROMPTS
    found = {
        "greedy": handle.generate(starts, max_length=16),
        "beam of 4": handle.generate(starts, beam=4, max_length=16, no_repeat_ngram_size=3),
    }
    found["draws"] = handle.generate(starts, sampling=True, beam=1, top_k=10, seed=3, max_length=16)
    return found


def fillings(checkpoint: Path, folder: Path) -> dict[str, list]:
    """The five best entries of two masked places, with their probabilities."""
    places = load(checkpoint, data=folder).fill_mask("the red <mask> sees a <mask> river")
    return {str(number): [list(entry) for entry in best] for number, best in enumerate(places)}


def predictions(checkpoint: Path, folder: Path) -> dict[str, str]:
    """The first prediction for the validation items as it is, and the hash of all."""
    predictor = load(checkpoint, data=folder).predictor()
    items = predictor.task.read(folder / "valid.jsonl")
    found = [json.dumps(one, sort_keys=True) for one in predictor.predict(items)]
    return {"first": found[0], "all": hashlib.sha256("\n".join(found).encode()).hexdigest()[:16]}


#: Name -> what makes it of a checkpoint and its data folder.
KINDS = {"texts": texts, "fillings": fillings, "predictions": predictions}
