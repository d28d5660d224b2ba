"""The source of a new folder's tokenizer: trained on its text, or ready-made."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from unified.corpus.noun_phrases import NounPhrases
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError, nearest
from unified.tokenization import Tokenizer, load_tokenizer, ordinary_symbols
from unified.tokenization.anna import WORD_SHARE, train_anna
from unified.tokenization.sentencepiece_tokenizer import MODEL_TYPES, train_sentencepiece
from unified.tokenization.wordpiece import train_wordpiece

TRAINED = (*MODEL_TYPES, "wordpiece", "anna")
DICTIONARIES = ("dict.txt", "dict.source.txt")


@dataclass(frozen=True)
class TokenizerSource:
    """Options of ``unified prepare`` about its tokenizer.

    Attributes:
        name: one of :data:`TRAINED`, or a path that :func:`unified.tokenization.load_tokenizer` reads. A folder's
            dictionary, where it has one, is taken over as it is.
        vocabulary_size: number of pieces to train, special ones included; None takes the tokenizer's default.
        character_coverage: share of the training text's characters that get a piece; None is 0.9995.
        normalization: Unicode normalisation of a sentencepiece model; None takes the tokenizer's default.
        lowercase: fold case before anything else.
        byte_fallback: see :func:`unified.tokenization.sentencepiece_tokenizer.train_sentencepiece`.
        word_share: share of ANNA's vocabulary that are words, not WordPieces; None is the paper's 0.7.
        spacy: a spaCy pipeline: ANNA's words are those of the noun phrases it finds. None takes words of all kinds.
        spacy_code: module that registers the pipeline's own components.
        sample_megabytes: the tokenizer is trained on a random sample of at most so many million characters.
    """

    name: str = "unigram"
    vocabulary_size: int | None = None
    character_coverage: float | None = None
    normalization: str | None = None
    lowercase: bool = False
    byte_fallback: bool = False
    word_share: float | None = None
    spacy: str | None = None
    spacy_code: str | None = None
    sample_megabytes: int = 20

    def __post_init__(self) -> None:
        if self.vocabulary_size is not None and self.vocabulary_size < 1:
            raise UnifiedError(f"--vocabulary-size must be at least 1, got {self.vocabulary_size}")
        if self.character_coverage is not None and not 0 < self.character_coverage <= 1:
            raise UnifiedError(f"--character-coverage is above 0 and at most 1, got {self.character_coverage}")
        if self.word_share is not None and not 0 <= self.word_share < 1:
            raise UnifiedError(f"--word-share is at least 0 and below 1, got {self.word_share}")
        if self.sample_megabytes < 1:
            raise UnifiedError(f"--sample-megabytes must be at least 1, got {self.sample_megabytes}")
        if self.spacy_code is not None and self.spacy is None:
            raise UnifiedError(f"--spacy-code {self.spacy_code} belongs to a pipeline; give --spacy PIPELINE too")
        foreign = {
            "--vocabulary-size": self.vocabulary_size is not None and not self.is_trained,
            "--character-coverage": self.character_coverage is not None and not self.is_trained,
            "--normalization": self.normalization is not None and self.name not in MODEL_TYPES,
            "--byte-fallback": self.byte_fallback and self.name not in ("unigram", "bpe"),
            "--lowercase": self.lowercase and self.name == "anna",
            "--word-share": self.word_share is not None and self.name != "anna",
            "--spacy": self.spacy is not None and self.name != "anna",
        }
        for option in (option for option, is_foreign in foreign.items() if is_foreign):
            raise UnifiedError(f"{option} means nothing with --tokenizer {self.name}; leave it out")

    @property
    def is_trained(self) -> bool:
        """True where the tokenizer is made from the text."""
        return self.name in TRAINED

    def train(self, lines: list[str]) -> Tokenizer:
        """Train on ``lines``, see the functions of the tokenizers' modules."""
        coverage = 0.9995 if self.character_coverage is None else self.character_coverage
        if self.name == "wordpiece":
            return train_wordpiece(lines, self.vocabulary_size, coverage, self.lowercase)
        if self.name == "anna":
            share = WORD_SHARE if self.word_share is None else self.word_share
            return train_anna(lines, self.vocabulary_size, coverage, share, self.noun_phrases())
        return train_sentencepiece(
            lines, self.name, self.vocabulary_size, coverage, self.normalization, self.lowercase, self.byte_fallback
        )

    def noun_phrases(self) -> NounPhrases | None:
        """The finder of candidates for ANNA's words; None takes all words.

        Raises:
            UnifiedError: see :class:`unified.corpus.noun_phrases.NounPhrases`.
        """
        return None if self.spacy is None else NounPhrases(self.spacy, self.spacy_code)

    def load(self) -> tuple[Tokenizer, Vocabulary, bytes | None]:
        """The ready-made tokenizer, its vocabulary, and its dictionary file as it is, None where it has none.

        Raises:
            UnifiedError: there is no such file, or tokenizer and dictionary do not belong together.
        """
        path = Path(self.name)
        if not path.exists():
            raise UnifiedError(
                f"--tokenizer {self.name}: neither one of {', '.join(TRAINED)} nor an existing file or folder"
                f"{nearest(str(self.name), TRAINED)}"
            )
        tokenizer = load_tokenizer(path, lowercase=self.lowercase or None)
        symbols = ordinary_symbols(tokenizer)
        dictionary = next((path / name for name in DICTIONARIES if path.is_dir() and (path / name).is_file()), None)
        if dictionary is None:
            return tokenizer, Vocabulary(symbols), None
        vocabulary = Vocabulary.load(dictionary)
        _require_equal(dictionary, vocabulary, symbols)
        return tokenizer, vocabulary, dictionary.read_bytes()


def _require_equal(dictionary: Path, vocabulary: Vocabulary, symbols: list[str]) -> None:
    special = vocabulary.special
    listed = vocabulary.symbols[special.ordinary_start : special.ordinary_stop]
    if listed == symbols:
        return
    index = next(
        (i for i, (a, b) in enumerate(zip(listed, symbols, strict=False)) if a != b), min(len(listed), len(symbols))
    )
    ours, theirs = (repr(names[index]) if index < len(names) else "nothing" for names in (listed, symbols))
    raise UnifiedError(
        f"{dictionary}: does not match the tokenizer beside it: symbol {index + 1} is {ours} here and {theirs} there"
    )
