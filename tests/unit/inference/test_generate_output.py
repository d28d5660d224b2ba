"""Lines of generated sentences are those of fairseq-generate."""

import math
from types import SimpleNamespace

import torch

from unified.inference.generate_output import lines


class Model:
    def pieces(self, ids):
        return [f"p{token}" for token in ids]

    def decode(self, ids):
        return "a\r\nb " + " ".join(map(str, ids))


def hypothesis(score, tokens, log_probs):
    return SimpleNamespace(score=score, tokens=torch.tensor(tokens), log_probs=torch.tensor(log_probs))


def test_scores_are_logarithms_to_base_two_and_every_line_ends():
    found = [
        hypothesis(-2 * math.log(2), [5, 6], [-math.log(2), -3 * math.log(2), -0.5 * math.log(2)]),
        hypothesis(-4.25 * math.log(2), [7], [-math.log(2), -7.5 * math.log(2)]),
    ]
    assert lines(Model(), 3, "the\nsource", "the\u2028reference", [4], found) == (
        "S-3\tthe source\nT-3\tthe reference\n"
        "H-3\t-2.000000\tp5 p6\nD-3\t-2.000000\ta b 4 5 6\nP-3\t-1.0000 -3.0000 -0.5000\n"
        "H-3\t-4.250000\tp7\nD-3\t-4.250000\ta b 4 7\nP-3\t-1.0000 -7.5000\n"
    )
    assert lines(Model(), 0, "x", None, [], []) == "S-0\tx\n"
    assert lines(Model(), 0, "x", "", [], []) == "S-0\tx\nT-0\t\n"
