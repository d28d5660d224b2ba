"""Names of the ways of scoring texts, and what each predicts a token from; imports nothing heavy, for help."""

from __future__ import annotations

from unified.errors import UnifiedError, nearest

#: Scorings by name: what each predicts a token from, and its source.
SENTENCES = {
    "left_to_right": "each token from those before it: at a [MASK] that sees them alone [UniLM], at the token before "
    "it where the model has learnt to predict the next token, or by XLNet's query stream",
    "right_to_left": "each token from those behind it: at a [MASK] that sees them alone [UniLM], or by the query "
    "stream",
    "pseudo_likelihood": "each token from all others: at a [MASK] in its place, or by the query stream "
    "[Salazar et al. 2020]",
    "shifted": "each token from all others: a [MASK] in its place, read at the token before it [GPT-BERT]",
    "infilling": "each token from all others: a sentinel in its place, which asks for it in the target [T5]",
    "permutation": "each token from those before it in a random order, the mean over several orders: by the query "
    "stream [XLNet], or at a [MASK] while all later tokens are [MASK]s",
    "diffusion": "several times l random tokens of n, all of them [MASK]s, from the others; each time counts n / l "
    "[LLaDA]",
}
#: Names of sums of scorings.
SUMS = {"both": "left_to_right+right_to_left"}


def scoring_names(text: str) -> list[str]:
    """The names in a text such as ``both`` or ``left_to_right+pseudo_likelihood``.

    Raises:
        UnifiedError: a name is unknown, or stands there twice.
    """
    names = "+".join(SUMS.get(name.strip(), name.strip()) for name in text.split("+")).split("+")
    for name in names:
        if name not in SENTENCES:
            known = (*SENTENCES, *SUMS)
            raise UnifiedError(f"no scoring {name!r}{nearest(name, known)}; there are {', '.join(known)}")
        if names.count(name) > 1:
            raise UnifiedError(f"the scoring {text!r} has {name} twice")
    return names
