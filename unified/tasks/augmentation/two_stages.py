"""Fine-tuning on generated questions first and on real ones then [UniLM, sec. 3.3; app. A]."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from unified.errors import UnifiedError
from unified.files.whole import write_whole_bytes
from unified.runtime.processes import run_module

_DEV = "dev-v2.0*.json*"


@dataclass(frozen=True)
class TwoStages:
    """``unified finetune`` twice: an epoch of the generated questions, then two of SQuAD 2.0.

    Both stages learn masked language modelling on their own texts beside the questions [UniLM, sec. 3.3].

    Attributes:
        folder: of the pipeline; models go into ``first`` and ``second`` below it.
        generated: folder of the generated questions; gets SQuAD's development set, on which both stages are scored.
        squad: folder of SQuAD 2.0.
        model: checkpoint that the first stage starts from.
        auxiliary_masking: weight of masked language modelling in both stages.
        first, second: further options of ``unified finetune`` of each.
        seed: of both.
    """

    folder: Path
    generated: Path
    squad: Path
    model: Path
    auxiliary_masking: float
    first: tuple[str, ...]
    second: tuple[str, ...]
    seed: int

    def check(self) -> None:
        """Refuses missing data and checkpoints, before hours of work.

        Raises:
            UnifiedError: there is no such SQuAD 2.0, or no such checkpoint.
        """
        from unified.conversions.named_models import checkpoint_named

        for pattern in ("train-v2.0*.json*", _DEV):
            if not list(self.squad.glob(pattern)):
                raise UnifiedError(f"--data {self.squad}: no file {pattern}")
        if not checkpoint_named(self.model).is_file():
            raise UnifiedError(f"--init {self.model}: no such checkpoint")

    def commands(self) -> dict[str, list[str]]:
        """The command of each stage by its name.

        The second starts from the first one's last checkpoint, with its heads: that of the answers, and that of tokens.
        """
        return {
            "first": self._command("first", self.generated, self.model, 1, self.first),
            "second": self._command("second", self.squad, self.folder / "first" / "checkpoint_last.pt", 2, self.second),
        }

    def _command(self, name: str, data: Path, model: Path, epochs: int, more: tuple[str, ...]) -> list[str]:
        masking = ["--auxiliary-masking", str(self.auxiliary_masking)] if self.auxiliary_masking else []
        return [
            *("unified", "finetune", "squad2.0", "--data", str(data), "--init", str(model)),
            *("--output", str(self.folder / name), "--run", name, "--epochs", str(epochs)),
            *(*masking, "--seed", str(self.seed), *more),
        ]

    def prepare(self) -> None:
        """Put SQuAD's development set beside the generated questions."""
        for path in self.generated.glob(_DEV):
            path.unlink()
        for path in self.squad.glob(_DEV):
            write_whole_bytes(self.generated / path.name, path.read_bytes())

    def run(self) -> None:
        """Runs both commands, each of which resumes its own work and changes no finished part of it.

        Raises:
            UnifiedError: a stage has failed, or was begun with another command or other data.
        """
        for name, words in self.commands().items():
            print(shlex.join(words), flush=True)
            if run_module("unified.cli", words[1:]):
                raise UnifiedError(f"the {name} stage of fine-tuning has failed; what it printed says why")
