"""How words are compared in the search for sentences that make up a summary."""

from unified.tasks.datasets.summaries.combinations import best_combination


def test_words_are_stemmed_once():
    assert best_combination(["it walks"], ["it walked"]) == ([0], False)
    assert best_combination(["the biases"], ["the bias"]) == ([], False)  # stems "bias" and "bia"
