"""The usual spelling of words and marks that single spaces divide, as tokenizers with BERT's words leave them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tokenizers.pre_tokenizers import BertPreTokenizer

#: Marks that stand at the word before, and at the next one.
_CLOSING, _OPENING = frozenset(".,;:!?%)]}…”»"), frozenset("([{$#“«‘¿¡")
_APOSTROPHES = frozenset("'’")
_CLITICS = frozenset(("s", "t", "d", "m", "ll", "re", "ve"))
#: Ends of the names of sites and files.
_ENDINGS = frozenset(("com", "org", "net", "edu", "gov", "html", "htm", "pdf", "doc", "xls", "txt", "ppt"))
#: Whether a mark stands at the word before, and at the next one.
_Sides = tuple[bool, bool]
_ALONE, _LEFT, _RIGHT, _BOTH = (False, False), (True, False), (False, True), (True, True)


def usual_spelling(text: str) -> str:
    """Joins marks to the words that they stand at: ``he said : " don ' t ! "`` -> ``he said: "don't!"``.

    Spaces beside marks go where the usual spelling has none, and nothing else changes, so BERT's tokenizer has the same
    words of both texts. Where a text may have been either, the more frequent spelling is taken: ``-`` between words is
    a hyphen, ``3 . 5`` a number.
    """
    return "".join(_spelt(text.split(" ")))


def respelt(text: str) -> str:
    """The spelling that a text has once it has been divided into BERT's words: dashes become hyphens, and so on."""
    return usual_spelling(" ".join(word for word, _ in BertPreTokenizer().pre_tokenize_str(text)))


def _spelt(words: Sequence[str]) -> Iterator[str]:
    """The words, each behind a space unless it stands at the last one."""
    opened: set[str] = set()
    joined = True
    for i, word in enumerate(words):
        left, right = _sides(words, i, opened)
        yield word if joined or left else f" {word}"
        joined = right


def _sides(words: Sequence[str], i: int, opened: set[str]) -> _Sides:
    """Says at which of its neighbours a word stands, without a space.

    Args:
        opened: marks that close what has been opened; changes.
    """
    mark, before, after = words[i], _at(words, i - 1), _at(words, i + 1)
    if mark == '"':
        return _quote(mark, opened)
    if mark == "‘":
        opened.add("’")
    if mark in _APOSTROPHES:
        return _apostrophe(words, i, opened)
    if mark == ".":
        return _stop(words, i)
    if mark == ",":
        return _BOTH if before.isdigit() and after.isdigit() and len(after) == 3 else _LEFT
    if mark == ":":
        return _BOTH if before.isdigit() and after.isdigit() or before and after == "/" else _LEFT
    if mark in "-–":
        return _dash(words, i)
    if mark in "/_":
        return bool(before), bool(after)
    if mark == "@":
        return _BOTH if _is_word(before) and _at(words, i + 2) == "." else _ALONE
    if mark == "&":
        return _BOTH if _is_initial(before) and _is_initial(after) else _ALONE
    if mark in "<>":
        return _bracket(words, i, opened)
    if mark == "(" and after == "s" and _at(words, i + 2) == ")":
        return _BOTH  # of option(s)
    return mark in _CLOSING, mark in _OPENING


def _quote(mark: str, opened: set[str]) -> _Sides:
    opened ^= {mark}
    return _RIGHT if mark in opened else _LEFT


def _bracket(words: Sequence[str], i: int, opened: set[str]) -> _Sides:
    """``< word >``; a lone one is a sign of comparison."""
    if words[i] == ">" and "<" in opened:
        return _quote("<", opened)
    next_one = next((words[j] for j in range(i + 1, len(words)) if words[j] in ("<", ">")), "")
    return _quote("<", opened) if words[i] == "<" and next_one == ">" else _ALONE


def _apostrophe(words: Sequence[str], i: int, opened: set[str]) -> _Sides:
    """``oliver ' s``, ``o ' clock``, ``the boys ' room``, ``a ' word '``."""
    mark, before, after = words[i], _at(words, i - 1), _at(words, i + 1)
    if _is_clitic(words, i) or _is_initial(before) and _is_word(after):
        return _BOTH
    if mark in opened:
        return _quote(mark, opened)
    if any(words[j] == mark and not _is_clitic(words, j) for j in range(i + 1, len(words))):
        return _quote(mark, opened)
    if before.endswith("s"):
        return _LEFT
    return _BOTH if _is_word(before) and _is_word(after) else (_is_word(before), _is_word(after))


def _is_clitic(words: Sequence[str], i: int) -> bool:
    return (_is_word(_at(words, i - 1)) or _ends_initials(words, i)) and _at(words, i + 1).lower() in _CLITICS


def _stop(words: Sequence[str], i: int) -> _Sides:
    """``3 . 5``, ``u . s .``, ``enron . com`` and the end of a sentence."""
    before, after = _at(words, i - 1), _at(words, i + 1)
    initials = _is_initial(before) and _is_initial(after) and _at(words, i + 2) == "."
    name = _is_word(before) and (after.lower() in _ENDINGS or before.lower() == "www")
    number = after.isdigit() and (before.isdigit() or not _is_word(before) and before not in _CLOSING)
    if initials or name or number and before.isdigit():
        return _BOTH
    return _RIGHT if number else _LEFT


def _dash(words: Sequence[str], i: int) -> _Sides:
    """``well - known``, ``u . s . - led``, ``10 – 20``, ``= - 1`` and ``word - - word``."""
    mark, before, after = words[i], _at(words, i - 1), _at(words, i + 1)
    if mark in (before, after):
        return before == mark, False
    if (_is_word(before) or _ends_initials(words, i)) and _is_word(after):
        return _BOTH if mark == "-" or before.isdigit() and after.isdigit() else _ALONE
    return _RIGHT if mark == "-" and after.isdigit() else _ALONE


def _at(words: Sequence[str], i: int) -> str:
    return words[i] if 0 <= i < len(words) else ""


def _is_word(word: str) -> bool:
    return word[:1].isalnum() and word[-1:].isalnum()


def _ends_initials(words: Sequence[str], i: int) -> bool:
    """Whether the stop of initials (``u . s .``) stands before a word."""
    return _at(words, i - 1) == _at(words, i - 3) == "." and _is_initial(_at(words, i - 2))


def _is_initial(word: str) -> bool:
    return len(word) == 1 and word.isalpha()
