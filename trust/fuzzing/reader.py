"""What is attacked: a way into the library, a small valid sample for it, and where one exists a strict reference."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

#: Damages the bytes of a file, or the text of an option.
Mutator = Callable[[bytes, random.Random], bytes]


class Refused(Exception):
    """A reference cannot read the input, so that the library must not read it either."""


@dataclass(frozen=True)
class Reader:
    """One way into the library.

    Attributes:
        name: in the names of cases.
        attacked: the file of the sample that is damaged. Where the input is an option, what messages call it.
        make: writes the sample into the current folder.
        read: reads the sample in the current folder; returns its content where there is a reference.
        mutators: one of them is drawn for each input.
        reference: the content of the attacked file by an independent library or a definition written out; None where
            reading alone is tried. Raises `Refused`.
        inputs: of the full set.
        named: whether messages must name the file.
    """

    name: str
    attacked: str
    make: Callable[[], None]
    read: Callable[[], object]
    mutators: Sequence[Mutator]
    reference: Callable[[bytes], object] | None = None
    inputs: int = 2000
    named: bool = True

    def mutated(self, sample: bytes, number: int) -> bytes:
        """The input of a number: the sample, damaged once to three times."""
        rng = random.Random(f"{self.name} {number}")
        data = sample
        for _ in range(rng.choice((1, 1, 1, 2, 3))):
            data = rng.choice(self.mutators)(data, rng)
        return data


def sample_file(name: str, content: bytes) -> Callable[[], None]:
    """Writes one file."""

    def make() -> None:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(content)

    return make
