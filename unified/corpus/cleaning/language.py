"""Language of a text by the library py3langid (naive Bayes over byte n-grams, Lui and Baldwin 2012); used only here."""

from __future__ import annotations

from types import ModuleType

from unified.errors import UnifiedError

#: Number of first characters by which the language of a text is judged.
JUDGED_CHARACTERS = 2000


class LanguageFilter:
    """True for texts in one language.

    Args:
        language: its ISO 639-1 code ("en").

    Raises:
        UnifiedError: py3langid is missing, or does not know the language.
    """

    def __init__(self, language: str):
        known = [code for code, _ in _py3langid().rank("")]
        if language not in known:
            raise UnifiedError(f"--clean language={language}: no such language; known are {' '.join(sorted(known))}")
        self._language = language

    def __call__(self, text: str) -> bool:
        return _py3langid().classify(text[:JUDGED_CHARACTERS])[0] == self._language


def _py3langid() -> ModuleType:
    try:
        import py3langid
    except ImportError:
        raise UnifiedError(
            "--clean language=… needs the library py3langid; install it with: pip install '.[clean]' in the "
            "library's folder"
        ) from None
    return py3langid
