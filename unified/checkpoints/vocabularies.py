"""A checkpoint over another dictionary: rows go where their symbols go, and new symbols get new rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from unified.arguments import INTEGER_LIMIT, shown
from unified.checkpoints.files import fingerprint
from unified.checkpoints.trained import Checkpoint, dictionary_file, find_checkpoint, write
from unified.data.vocabulary import APPENDED, Vocabulary
from unified.errors import UnifiedError
from unified.files.destination import new_folder
from unified.tokenization import load_tokenizer, tokenizer_files

_SYMBOLS = "transformer.embeddings.tokens."
#: Symbols that the softmax has, see :class:`unified.model.embeddings.SymbolTable`.
SCORED = _SYMBOLS + "scored"
BIASES = ("heads.token.bias", "heads.boundary.bias")
#: Parameters and buffers with a row for every symbol.
BY_SYMBOL = (_SYMBOLS + "weight", SCORED, *BIASES)
#: Default seed of the generator that draws the rows of new symbols.
SEED = 1
#: The fraction of the smaller dictionary's words and pieces that must be in the other one, at least.
_LEAST_SHARED = 0.5


@dataclass(frozen=True)
class VocabularyChange:
    """Outcome of changing a vocabulary, counted in symbols; ``<unk>`` and the like are among them.

    Attributes:
        kept: those with rows of the checkpoint.
        new: those that got rows of their own, drawn at random and left out of the softmax.
        left_out: those of the checkpoint that the new dictionary lacks.
    """

    kept: tuple[str, ...]
    new: tuple[str, ...]
    left_out: tuple[str, ...]


def change_vocabulary(source: Path, data: Path, destination: Path, seed: int = SEED) -> VocabularyChange:
    """Make a folder with ``checkpoint_last.pt`` over the dictionary of another data folder, without an optimizer.

    New symbols get rows as :func:`over_symbols` makes them.

    Args:
        source: a checkpoint file or its folder.
        data: the folder whose dictionary is wanted; its tokenizer comes along.
        destination: must not exist, or be empty.
        seed: of the new rows.

    Raises:
        UnifiedError: a file is missing, the tokenizers are of different types, the dictionaries share too little, or
            the seed has more than 64 bits; nothing is written.
    """
    if not -INTEGER_LIMIT <= seed < INTEGER_LIMIT:
        raise UnifiedError(f"seed must be an integer of 64 bits, got {shown(seed)}")
    checkpoint = Checkpoint.load(find_checkpoint(source))
    trained = checkpoint.trained()
    old, new = trained.vocabulary, Vocabulary.load(dictionary_file(Path(data)))
    _check_tokenizers(checkpoint.folder, Path(data))
    _check_shared(old, new, Path(data))
    parameters = over_symbols(trained.parameters, old.symbols, new.symbols, trained.config.initializer_range, seed)
    config = trained.config.with_vocabulary(len(new))
    with new_folder(destination, overwrite=False) as folder:
        write(replace(trained, config=config, parameters=parameters, vocabulary=new), folder)
        if tokenizer_files(data):
            load_tokenizer(data).save(folder)
    before, after = set(old.symbols), set(new.symbols)
    return VocabularyChange(
        kept=tuple(symbol for symbol in new.symbols if symbol in before),
        new=tuple(symbol for symbol in new.symbols if symbol not in before),
        left_out=tuple(symbol for symbol in old.symbols if symbol not in after),
    )


def over_symbols(
    parameters: Mapping[str, torch.Tensor], old: Sequence[str], new: Sequence[str], deviation: float, seed: int = SEED
) -> dict[str, torch.Tensor]:
    """``parameters`` with tables that have a row for each symbol of ``new``, in float32.

    The softmax leaves new symbols out until a training has them as targets. They begin with the median of the other
    symbols' biases: a softmax does not see what all biases have in common, so 0 could stand far above or below them.

    Args:
        parameters: where they do not say which symbols the softmax has (:data:`SCORED`), it has all of ``old``.
        old: the symbol of each row; further rows are left out.
        deviation: standard deviation of the embeddings of new symbols, which are drawn from N(0, deviation).
        seed: of those draws.
    """
    row_of = {symbol: row for row, symbol in enumerate(old)}
    rows = torch.tensor([row_of.get(symbol, -1) for symbol in new])
    kept, generator = rows >= 0, torch.Generator().manual_seed(seed)
    scored = parameters.get(SCORED, torch.ones(len(old)))
    moved = {**parameters, SCORED: scored}
    for name in [name for name in BY_SYMBOL if name in moved]:
        table = moved[name].float()
        made = torch.zeros(len(new), *table.shape[1:])
        if name in BIASES:
            made.fill_(table[: len(old)][scored > 0.5].median())
        elif table.dim() > 1:
            made.normal_(0, deviation, generator=generator)
        made[kept] = table[rows[kept]]
        moved[name] = made
    return moved


def grown(
    parameters: Mapping[str, torch.Tensor], symbols: Sequence[str], saved: int, deviation: float
) -> tuple[dict[str, torch.Tensor], list[str]]:
    """``parameters`` of a checkpoint with rows for symbols that a dictionary has behind the checkpoint's own.

    Args:
        symbols: of the dictionary.
        saved: the fingerprint of the checkpoint's dictionary.
        deviation: as in :func:`over_symbols`.

    Returns:
        The parameters, and the symbols that got rows; as they are where the dictionary does not begin like that.
    """
    rows = len(parameters[BY_SYMBOL[0]]) if BY_SYMBOL[0] in parameters else len(symbols)
    if rows >= len(symbols) or fingerprint(symbols[:rows]) != saved:
        return dict(parameters), []
    return over_symbols(parameters, symbols[:rows], symbols, deviation), list(symbols[rows:])


def _check_shared(old: Vocabulary, new: Vocabulary, data: Path) -> None:
    before, after = (set(vocabulary.symbols[4:]) - set(APPENDED) for vocabulary in (old, new))
    shared, smaller = len(before & after), min(len(before), len(after))
    if shared < _LEAST_SHARED * smaller or not shared:
        raise UnifiedError(
            f"{data}: its dictionary shares {shared} of {smaller} symbols with the checkpoint's, too few to go on from "
            "it; make the data with `unified prepare --tokenizer FOLDER`, the checkpoint's folder, or train anew"
        )


def _check_tokenizers(old: Path, new: Path) -> None:
    before, after = tokenizer_files(old), tokenizer_files(new)
    if before and after and before != after:
        raise UnifiedError(
            f"{new}: its tokenizer is a {' and a '.join(after)}, the checkpoint's in {old} a "
            f"{' and a '.join(before)}; symbols spelled alike are not the same pieces"
        )
