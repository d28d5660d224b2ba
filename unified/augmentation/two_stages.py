"""Fine-tuning on generated questions first and on real ones then (UniLM, appendix A)."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from unified.augmentation.stages import claim
from unified.data.destination import describe
from unified.errors import UnifiedError
from unified.results import FILE_NAME

_DEV = "dev-v2.0*.json*"


@dataclass(frozen=True)
class TwoStages:
    """``unified finetune`` twice: an epoch of the generated questions, and SQuAD 2.0.

    Attributes:
        folder: of the pipeline; models go into ``first`` and ``second`` below it.
        generated: folder of the generated questions; gets SQuAD's development set, on which both stages are scored.
        squad: folder of SQuAD 2.0.
        init: checkpoint that the first stage starts from.
        auxiliary_masking: weight of masked language modelling in the first stage.
        first, second: further options of ``unified finetune`` of each.
        seed: of both.
    """

    folder: Path
    generated: Path
    squad: Path
    init: Path
    auxiliary_masking: float
    first: tuple[str, ...]
    second: tuple[str, ...]
    seed: int

    def check(self) -> None:
        """
        Raises:
            UnifiedError: there is no such SQuAD 2.0, or no such checkpoint.
        """
        from unified.checkpoints.trained import find_checkpoint

        for pattern in ("train-v2.0*.json*", _DEV):
            if not list(self.squad.glob(pattern)):
                raise UnifiedError(f"--squad {self.squad}: no file {pattern}")
        if not find_checkpoint(self.init).is_file():
            raise UnifiedError(f"--init {self.init}: no such checkpoint")

    def commands(self) -> dict[str, list[str]]:
        """Those of both stages, by name; the second starts from the first one's last checkpoint, head included."""
        masking = ["--auxiliary-masking", str(self.auxiliary_masking)] if self.auxiliary_masking else []
        first, second = (["--output", str(self.folder / name), "--run", name] for name in ("first", "second"))
        shared = ["--seed", str(self.seed)]
        return {
            "first": [
                *("unified", "finetune", "squad2.0", "--data", str(self.generated), "--init", str(self.init)),
                *(*first, "--epochs", "1", *masking, *shared, *self.first),
            ],
            "second": [
                *("unified", "finetune", "squad2.0", "--data", str(self.squad)),
                *("--init", str(self.folder / "first" / "checkpoint_last.pt"), *second, *shared, *self.second),
            ],
        }

    def prepare(self) -> None:
        """Put SQuAD's development set beside the generated questions."""
        for path in self.generated.glob(_DEV):
            path.unlink()
        for path in self.squad.glob(_DEV):
            shutil.copyfile(path, self.generated / path.name)

    def run(self) -> None:
        """Run the commands that have left no results; an interrupted one goes on where its last checkpoint is.

        Raises:
            UnifiedError: a stage was begun with another command or other data, or has failed.
        """
        from unified.checkpoints.trained import find_checkpoint

        for name, words in self.commands().items():
            init = find_checkpoint(words[words.index("--init") + 1])
            data = Path(words[words.index("--data") + 1])
            files = {path.name: describe(path) for path in sorted(data.glob("*-v2.0*.json*"))}
            claim(self.folder / name, {"command": words, "init": describe(init), "data": files})
            print(shlex.join(words), flush=True)
            if (self.folder / name / FILE_NAME).exists():
                print(f"{name}: done before", file=sys.stderr, flush=True)
            elif subprocess.run([sys.executable, "-m", "unified.cli", *words[1:]]).returncode:
                raise UnifiedError(f"the {name} stage of fine-tuning has failed; what it printed says why")
