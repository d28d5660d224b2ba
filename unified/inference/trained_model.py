"""Base class of language models and models of tasks: files, vocabulary, tokenizer, device, vectors of texts."""

from __future__ import annotations

import operator
import os
import re
import warnings
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

import torch

from unified.arguments import require_path, require_text, require_texts, shown
from unified.checkpoints.trained import Trained, dictionary_file
from unified.conversions.export import Source
from unified.conversions.formats import export
from unified.data.vocabulary import UNKNOWN, Vocabulary
from unified.errors import UnifiedError
from unified.inference.embedding import embedded
from unified.kernels.cpu import quantize
from unified.model import UnifiedModel
from unified.runtime.devices import usable_device
from unified.tokenization import PATTERNS, Tokenizer, load_tokenizer, tokenizer_files
from unified.tokenization.symbol_tokenizer import SymbolTokenizer

#: A piece of a word or of a text, as WordPiece, sentencepiece and byte-level BPE write it.
_PIECE = re.compile(r"(?:##|▁|Ġ)\w")
#: Letters that hardly any vocabulary has: signs of Egyptian, of Sumerian and of Bamum.
_RARE = ("\U00013000", "\U00012000", "\U00016800")


def tokenizer_of(folder: Path) -> Tokenizer:
    """The tokenizer of a data folder; where it has none, texts are symbols of its dictionary between white space.

    Warns where these symbols look like the pieces of a tokenizer, whose files may have been left behind.
    """
    if tokenizer_files(folder):
        return load_tokenizer(folder)
    symbols = Vocabulary.load(dictionary_file(folder)).symbols
    pieces = [symbol for symbol in symbols if _PIECE.match(symbol)]
    if len(pieces) > len(symbols) / 20:
        warnings.warn(
            f"{folder} holds no tokenizer, so texts must be divided into symbols by white space; the dictionary has "
            f"pieces of words, such as {pieces[0]!r}: for other texts copy the tokenizer's files ({PATTERNS}) into "
            "that folder",
            stacklevel=2,
        )
    return SymbolTokenizer(symbols)


class TrainedModel:
    """A model with its vocabulary and tokenizer; :func:`unified.load` loads one.

    Attributes:
        model: in eval mode.
        vocabulary, tokenizer: from the data folder it was trained on.
        folder: where vocabulary and tokenizer came from.
        others: further models that answer or write together with it.
        special: ids of the special symbols.
        untrained: names of parameters that no checkpoint had, which are random.
    """

    untrained: frozenset[str] = frozenset()

    def __init__(
        self,
        model: UnifiedModel,
        vocabulary: Vocabulary,
        tokenizer: Tokenizer,
        folder: Path,
        others: Sequence[TrainedModel] = (),
    ):
        self.model, self.vocabulary, self.tokenizer, self.folder = model.eval(), vocabulary, tokenizer, folder
        self.others = tuple(others)
        self.special = vocabulary.special

    @property
    def _all(self) -> tuple[TrainedModel, ...]:
        return (self, *self.others)

    @property
    def device(self) -> torch.device:
        """Device of the parameters."""
        return self.model.transformer.embeddings.tokens.weight.device

    def eval(self) -> Self:
        """Switch dropout off (it is off after loading)."""
        for one in self._all:
            one.model.eval()
        return self

    def to(self, device: str | torch.device) -> Self:
        """Move the model.

        Raises:
            UnifiedError: the machine has no such device.
        """
        device = usable_device(device)
        for one in self._all:
            one.model.to(device)
        return self

    def quantize(self) -> Self:
        """Let linear maps compute in int8 from now on, which a CPU does faster; answers and texts may change a little.

        What is saved of the model afterwards has its own float32 weights. After weights were written through ``.data``,
        call it again. See :mod:`unified.kernels.cpu.int8`.

        Raises:
            UnifiedError: the model is not on a CPU, or this torch has no int8 product.
        """
        for one in self._all:
            quantize(one.model)
        return self

    def encode(self, text: str) -> list[int]:
        """Ids of a text, without special symbols.

        Raises:
            UnifiedError: this is no text.
        """
        return self.vocabulary.encode(self.tokenizer.encode(require_text("text", text))).tolist()

    def pieces(self, ids: Iterable[int]) -> list[str]:
        """Symbols of ids; begin, separator and padding are left out.

        Raises:
            UnifiedError: ``ids`` is no list of integers, or one is beyond the vocabulary.
        """
        silent = (self.special.begin, self.special.separator, self.special.pad)
        return [self.vocabulary.symbols[i] for i in self._known(ids) if i not in silent]

    def decode(self, ids: Iterable[int], unknown: str = UNKNOWN) -> str:
        """The text that ids stand for.

        Args:
            unknown: the piece that stands for an unknown token; :attr:`unknown_text` gives a text that
                :meth:`encode` reads again.

        Raises:
            UnifiedError: ``ids`` is no list of integers, or one is beyond the vocabulary.
        """
        return self.tokenizer.decode([unknown if piece == UNKNOWN else piece for piece in self.pieces(ids)])

    @cached_property
    def unknown_text(self) -> str:
        """A character that is an unknown token; ``<unk>`` where the tokenizer knows all characters.

        ``<unk>`` itself is text like any other, which has known tokens.
        """
        return next((one for one in _RARE if self.encode(one).count(self.special.unknown) == 1), UNKNOWN)

    def _known(self, ids: Iterable[int]) -> list[int]:
        if isinstance(ids, str):
            raise UnifiedError(f"ids: expected a list of integers, got the text {shown(ids)}")
        try:
            numbers = list(map(operator.index, ids))
        except TypeError:
            raise UnifiedError(f"ids: expected a list of integers, got {shown(ids)}") from None
        for i in numbers:
            if not 0 <= i < len(self.vocabulary):
                raise UnifiedError(f"ids must be from 0 to {len(self.vocabulary) - 1}, got {shown(i)}")
        return numbers

    @torch.no_grad()
    def embed(
        self,
        texts: Sequence[str],
        pooling: str = "mean",
        *,
        normalize: bool = False,
        max_tokens: int = 0,
        batch_size: int = 32,
    ) -> torch.Tensor:
        """A vector of each text, from the last states of its sequence.

        The sequence is ``CLS text SEP``, or ``text SEP CLS`` for models with relative positions (XLNet). It is read in
        both directions, or under the mask that the model was trained with.

        Args:
            pooling: "mean" averages the states of all tokens of the sequence, special symbols included, as sentence
                encoders such as MiniLM do; "cls" takes the state of CLS, or of the last SEP where
                a left-to-right mask hides the text from CLS.
            normalize: give each vector length 1, as many sentence encoders want before vectors are compared.
            max_tokens: read only so many first tokens of each text, special symbols not counted; 0 reads all.
            batch_size: texts that are read together.

        Returns:
            float32 (N, D) on the CPU, in the order of the texts.

        Raises:
            UnifiedError: ``texts`` is not a list of texts, one is longer than the position table, or an option is
                unknown.
        """
        self._require_one_model("embed")
        ids = [self.encode(text) for text in require_texts("texts", texts)]
        return embedded(self.model, self.vocabulary, self.tokenizer, ids, pooling, normalize, max_tokens, batch_size)

    def save_pretrained(
        self, folder: str | os.PathLike[str], format: str | None = None, dtype: torch.dtype = torch.float32
    ) -> None:
        """Write the model for ``transformers``, as ``unified export`` does; :func:`unified.load` reads it again.

        Args:
            folder: must not exist, or be empty.
            format: "bert", "xlnet", "modernbert", or "unified" for a folder that brings the code of its model along and
                writes as the model does. None takes the class that gives the same states; "unified" where there is
                none, or where the model was fine-tuned to write.
            dtype: of the weights in the folder, to which they are rounded: float32, float16 or bfloat16 of torch.

        Raises:
            UnifiedError: the model or its tokenizer does not fit the format, ``dtype`` is none of these or cannot hold
                a weight, or this is an ensemble.
        """
        self._require_one_model("save_pretrained")
        folder = require_path("folder", folder)
        tokenizer = None if isinstance(self.tokenizer, SymbolTokenizer) else self.tokenizer
        export(Source("this model", self._as_trained(), tokenizer, dtype), Path(folder), format)

    def _as_trained(self) -> Trained:
        known = {name: value for name, value in self.model.state_dict().items() if name not in self.untrained}
        return self._trained({name: value.detach().cpu() for name, value in known.items()})

    def _trained(self, parameters: dict[str, torch.Tensor]) -> Trained:
        """The model as a checkpoint says it."""
        return Trained(self.model.config, "nothing", parameters, self.vocabulary)

    def shared_properties(self) -> dict[str, object]:
        """Properties that must be equal in models that work together, under their names in messages."""
        return {
            "types of model": type(self).__name__,
            "vocabularies": self.vocabulary.symbols,
            "tokenizers": _saved(self.folder),
        }

    def _require_one_model(self, method: str) -> None:
        if self.others:
            raise UnifiedError(f"{method} asks a single model; this is an ensemble of {1 + len(self.others)}")


def require_alike(names: Sequence[str], models: Sequence[TrainedModel]) -> None:
    """Refuse models that do not belong together.

    Args:
        names: what the user calls the models.

    Raises:
        UnifiedError: there is none; or names the first model that differs from the first one, and in what.
    """
    if not models:
        raise UnifiedError("an ensemble needs at least one model")
    first, properties = names[0], models[0].shared_properties()
    for name, model in zip(names[1:], models[1:], strict=True):
        own = model.shared_properties()
        for what in {**properties, **own}:
            if properties.get(what) != own.get(what):
                values = _shown(properties.get(what), own.get(what))
                raise UnifiedError(f"{name} and {first} cannot answer together: {what} differ{values}")


def _saved(folder: Path) -> dict[str, bytes]:
    """Contents of the files that the tokenizer of a folder saves, by name; its settings are among them."""
    if not tokenizer_files(folder):
        return {}
    with TemporaryDirectory() as empty:
        load_tokenizer(folder).save(empty)
        return {path.name: path.read_bytes() for path in Path(empty).iterdir()}


def _shown(one: object, other: object) -> str:
    """Text that shows both values of a setting, if they are short enough for one line."""
    texts = [str(value) for value in (one, other)]
    return f" ({texts[1]} and {texts[0]})" if sum(map(len, texts)) <= 80 else ""
