"""Clean-up of generated summaries, rule by rule, and lengths tuned on one n-best list."""

import json
import math
import random
from dataclasses import replace

import pytest
from rouge_score.rouge_scorer import RougeScorer

from tests.support.corpora import write
from unified.cli import main
from unified.cli.commands.scoring.texts import add_clean_up
from unified.tasks.metrics.length_tuning import NBest, tuned
from unified.tasks.metrics.outputs import Written, read_n_best, read_references
from unified.tasks.metrics.summaries import POST_PROCESSING, PostProcessing

CNNDM, GIGAWORD, XSUM = (POST_PROCESSING[name] for name in ("cnndm", "gigaword", "xsum"))
PTB = replace(CNNDM, fewest=0, overlap=1.0, max_words=0)


# ---------------------------------------------------------------- clean-up, typed out


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a ( b ) [ c ] { d }", "a -LRB- b -RRB- -LSB- c -RSB- -LCB- d -RCB-"),
        ('he said " no " and " yes "', "he said `` no '' and `` yes ''"),
        ("the ' old ' house", "the ` old ' house"),
        ("they don ' t and can ' t", "they do n't and ca n't"),
        ("it ' s , he ' d , we ' ll , I ' m", "it 's , he 'd , we 'll , I ` m"),
        ("well . . . yes", "well ... yes"),
        ("$ 3 , 000 , 000 or 3 . 03 % , 5 .", "$ 3,000,000 or 3.03 % , 5 ."),
        ("the U . N . says", "the U.N. says"),
        ("the U . S . A .", "the U.S.A."),
        ("plan B . Then", "plan B . Then"),
        ("the U . S", "the U . S"),
        ("the U . S economy", "the U . S economy"),  # the second full stop is missing
        ("in June . 3 of 4 . x", "in June . 3 of 4 . x"),  # a decimal point has digits on both sides
        ("a , 000 and 7 , b", "a , 000 and 7 , b"),
        ("a well - known - ish man", "a well-known-ish man"),
        ("yes - - no", "yes -- no"),
        ("- a dash -", "- a dash -"),
        ("a - ( b )", "a - -LRB- b -RRB-"),
        ("! - b", "! - b"),
        ("wow ! ! ! ! ! !", "wow ! ! !"),
        ("wow ! ! !", "wow ! ! !"),
        ("wow ! ! ! !", "wow !"),
        ("oh no ! ! ! ! ! ! !", "oh no !"),
        ("! ! ! !", "! ! ! !"),  # four pieces stay
        # Plain text is parted as BERT's tokenizer does; words that have the form already stay.
        ('He didn\'t (really) say "3,000."', "He did n't -LRB- really -RRB- say `` 3,000 . ''"),
        ("a -LRB- b -RRB- `` c '' d n't e 's -- ...", "a -LRB- b -RRB- `` c '' d n't e 's -- ..."),
    ],
)
def test_penn_treebank_form(text, expected):
    assert PTB(text) == PTB.in_form(text) == expected if "! ! ! !" not in text else PTB(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("one two three four | one two three four five", "one two three four five"),  # four words are too few
        ("a b c d e | A B c d x", "a b c d e"),  # 4 of 5 words stood before
        ("a b c d e f g h i j | a b c d e f g x y z", "a b c d e f g h i j | a b c d e f g x y z"),  # 7 of 10 may
        ("a b c d e | a b c d x | x f g h i", "a b c d e | x f g h i"),
        ("a b c d e | a b c d x | x b c d f", "a b c d e"),  # x stood in a sentence that was dropped
        ("a a a a a", "a a a a a"),
        ("| a b c d e |", "a b c d e"),
        ("a b", ""),
    ],
)
def test_sentences_are_dropped(text, expected):
    assert CNNDM(text, "|") == expected


def test_summaries_are_cut_at_seventy_words():
    sentences = [" ".join(f"w{s}x{i}" for i in range(30)) for s in range(4)]
    words = CNNDM(" [X_SEP] ".join(sentences), "[X_SEP]").split(" [X_SEP] ")
    assert [len(sentence.split()) for sentence in words] == [30, 30, 10]
    assert [len(s.split()) for s in replace(CNNDM, max_words=60)(" | ".join(sentences), "|").split(" | ")] == [30, 30]
    assert replace(CNNDM, max_words=0)(" | ".join(sentences), "|") == " | ".join(sentences)
    assert CNNDM.in_form("a | b c", "|") == "a | b c"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("profit ( net ) up 12 . 5 pct", "profit -lrb- net -rrb- up ##.# pct"),
        ("[UNK] & sons < x > <unk>", "UNK &amp; sons &lt; x &gt; UNK"),
        ("stocks of [UNK], ## -rrb- &amp; 1", "stocks of UNK , # # -rrb- &amp; #"),
        ('don \' t - " say "', "do n't - `` say ''"),
        ("u.s.-led", "u . s . - led"),
    ],
)
def test_gigaword(text, expected):
    assert GIGAWORD(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "he ( J ) can ' t , \" it ' s 3 , 000 - odd [ x ]",
            "he -LRB- J -RRB- ca n't , \" it 's 3,000 - odd [ x ]",
        ),
        ("the ' U . N . '", "the ' U.N. '"),
    ],
)
def test_xsum(text, expected):
    assert XSUM(text) == expected


def test_options_name_the_rules_that_exist():
    import argparse

    parser = argparse.ArgumentParser()
    add_clean_up(parser)
    (choices,) = [action.choices for action in parser._actions if action.dest == "post_process"]
    assert set(choices) == set(POST_PROCESSING) == {rules.name for rules in POST_PROCESSING.values()}
    assert str(CNNDM) == "cnndm|max_words:70" and str(XSUM) == "xsum|max_words:any"


def test_rules_end_on_any_input():
    """No rule loses a letter, whatever it is given, but where sentences are dropped."""
    rng = random.Random(2)
    alphabet = "a t n U . , ' \" - ( ) 3 # & \u6f22 \u2019 s".split()
    for _ in range(3000):
        text = " ".join(rng.choices(alphabet, k=rng.randint(0, 15)))
        for rules in (PTB, XSUM, PostProcessing("plain")):
            kept = [c for c in rules.in_form(text).replace("LRB", "").replace("RRB", "") if c.isalnum()]
            assert kept == [c for c in text if c.isalnum()], text


# ---------------------------------------------------------------- scores


def score(capsys, *arguments):
    status = main(["score", "generation", *map(str, arguments), "--json"])
    out, err = capsys.readouterr()
    return json.loads(out) if status == 0 else err


def test_scores_of_cleaned_summaries(tmp_path, capsys):
    hypotheses = write(tmp_path / "h", "He isn't (here) now . | no\nThe cat sat on the mat | the cat sat on the mat\n")
    references = write(tmp_path / "r", "He isn't (here) now.\nThe cat sat on the mat.\n")
    options = ("--post-process", "cnndm", "--sentence-separator", "|")
    plain = score(capsys, hypotheses, references, *options[2:])
    published = score(capsys, hypotheses, references, *options)
    both = score(capsys, hypotheses, references, *options, "--plain-references")
    assert "post_process" not in plain and published["post_process"] == both["post_process"] == "cnndm|max_words:70"
    assert both["rouge1"] == both["rougeL"] == 100 and plain["rouge1"] < 90
    assert published["rouge1"] < 100  # -LRB- is a word to ROUGE
    assert "give --sentence-separator" in score(capsys, hypotheses, references, *options[:2])
    assert "go with --post-process" in score(capsys, hypotheses, references, "--max-words", 3)
    assert "--max-words must be 0" in score(capsys, hypotheses, references, *options, "--max-words", -1)


def test_pairs_are_references(tmp_path, capsys):
    rows = [{"source": "x", "target": "a b c"}, {"target": "d", "references": ["d e f", "g h"]}]
    path = write(tmp_path / "pairs.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert read_references(path) == [["a b c"], ["d e f", "g h"]]
    hypotheses = write(tmp_path / "h", "a b c\ng h\n")
    assert score(capsys, hypotheses, "--references", path)["rouge1"] == 100
    path = write(tmp_path / "bad.jsonl", '{"target": 3}\n{"references": []}\n[]\n{\n{"target": "x"}\n')
    message = score(capsys, hypotheses, "--references", path, "--verbose")
    assert f"{path}, line 1: 'target' must be a text, or a list of texts that are all references, got 3" in message
    assert f"{path}, line 2: 'references' must be a list of texts, got []" in message
    assert (
        f"{path}, line 3: not a JSON object but a list; {path}, line 4: not JSON" in message
        and f"{path}, line 5" not in message
    )
    path = write(tmp_path / "bad.jsonl", '{"text": "x"}\n{"text": "y", "id": 2}\n')
    assert f"{path}, 2 lines (1, 2): no field 'target'; its fields: 'text'" in score(
        capsys, hypotheses, "--references", path
    )


# ---------------------------------------------------------------- lengths


def generated(path, hypotheses, references):
    """Output of fairseq-generate: of each sentence (text, scores of its tokens in bits)."""
    lines = []
    for i, (some, reference) in enumerate(zip(hypotheses, references, strict=True)):
        lines += [f"S-{i}\tx", f"T-{i}\t{reference}"]
        for text, scores in some:
            lines += [f"H-{i}\t-1.0\t{text}", f"D-{i}\t-1.0\t{text}", f"P-{i}\t{' '.join(map(str, scores))}"]
    return write(path, "".join(f"{line}\n" for line in lines))


def random_n_best(rng, sentences=12):
    words = "abcdefg"
    hypotheses, references = [], []
    for _ in range(sentences):
        references.append(" ".join(rng.choices(words, k=rng.randint(1, 6))))
        lengths = [rng.randint(1, 7) for _ in range(rng.randint(1, 4))]
        hypotheses.append([
            (" ".join(rng.choices(words, k=n)), [round(-rng.random(), 4) for _ in range(n + 1)]) for n in lengths
        ])  # fmt: skip
    return hypotheses, references


@pytest.mark.parametrize("penalty", ["unilm", "fairseq"])
def test_lengths_are_tuned_by_their_definition(tmp_path, penalty):
    rng, scorer = random.Random(7), RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=True)
    hypotheses, references = random_n_best(rng)
    written = read_n_best([generated(tmp_path / "out", hypotheses, references)])
    assert written[0][0].log_prob == pytest.approx(math.log(2) * sum(hypotheses[0][0][1]))
    nbest = NBest(written, [one.text for some in written for one in some], [[r] for r in references])
    settings = ([0.0, 0.6, 2.0], [0, 3], [2, 5, 9])
    found = tuned(nbest, penalty, *settings, "rougeL")
    assert len(found) == 3 * 5  # from 3 to 2 tokens is none
    assert [one.rougeL for one in found] == sorted((one.rougeL for one in found), reverse=True)
    assert len({one.rougeL for one in found}) > 4
    for one in found:
        totals, outside = [0.0] * 3, 0
        for some, reference in zip(hypotheses, references, strict=True):
            allowed = [h for h in some if one.min_length <= len(h[1]) - 1 <= one.max_length]
            outside += not allowed
            ranked = []
            for text, log_probs in allowed or some:
                n = len(log_probs)
                ranked.append((sum(log_probs) / ((5 + n) / 6 if penalty == "unilm" else n) ** one.lenpen, text))
            best = max(ranked, key=lambda pair: pair[0])[1]
            scores = scorer.score(reference, best)
            totals = [t + s.fmeasure for t, s in zip(totals, scores.values(), strict=True)]
        expected = [100 * total / len(references) for total in totals]
        assert [one.rouge1, one.rouge2, one.rougeL] == pytest.approx(expected) and one.outside == outside


def test_tune_lengths_prints_the_options(tmp_path, capsys):
    # The longer hypothesis is the reference; a penalty that favours length, or a minimum, finds it.
    path = generated(tmp_path / "out", [[("a b", [-1.2] * 3), ("a b c d", [-1] * 5)]] * 2, ["a b c d"] * 2)
    arguments = ["tune-lengths", path, "--lenpens", "0", "2", "--output", str(tmp_path / "tried.json")]
    assert main(arguments) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == "4 hypotheses of 2 sentences; 2 settings tried, best first:"
    assert out[2].split() == ["2", "0", "4", "100.00", "100.00", "100.00", "0"]
    assert out[-1] == "fairseq-generate: --length-penalty unilm --lenpen 2 --min-len 0 --max-len-b 4"
    tried = json.loads((tmp_path / "tried.json").read_text())["tried"]
    assert [one["lenpen"] for one in tried] == [2, 0] and tried[1]["rouge1"] == pytest.approx(200 / 3)
    assert main([*arguments[:5], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tried"] == tried
    assert main([*arguments[:2], "--lenpens", "0", "--min-lengths", "0", "3", "--max-lengths", "2", "9"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].endswith("--lenpen 0 --min-len 3 --max-len-b 9")


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ("D-0\t-1\ta\n", "D- and P- lines of sentence 0 are missing or of different number"),
        ("D-1\t-1\ta\nP-1\t-1\n", "of sentence 0 are missing"),
        ("D-0\t-1\ta\nP-0\tx\n", "line 4: 'x' are no scores of tokens"),
    ],
)
def test_output_without_scores_is_refused(tmp_path, capsys, lines, says):
    path = write(tmp_path / "out", "S-0\tx\nH-0\t-1\ta\n" + lines)
    references = write(tmp_path / "r", "a\n")
    with pytest.raises(ValueError, match=says):
        read_n_best([path])
    assert main(["tune-lengths", path, "--references", references]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_lengths_are_tuned_by_stems():
    """Stems count where lengths are chosen, as they do in `score_generation`."""
    assert (
        NBest([[Written("cats running", -1.0, 3)]], ["cats running"], [["cat runs"]]).scores("unilm", 1.0, 0, 9).rouge1
        == 100
    )


def test_ties_go_to_the_earlier_hypothesis():
    written = [[Written("a", -1.0, 2), Written("b", -1.0, 2)]]
    assert NBest(written, ["a", "b"], [["a"]]).scores("unilm", 1.0, 0, 9).rouge1 == 100
    assert NBest(written, ["b", "a"], [["a"]]).scores("unilm", 1.0, 0, 9).rouge1 == 0
