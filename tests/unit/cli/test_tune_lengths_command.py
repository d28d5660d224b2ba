"""`unified tune-lengths`: limits that it tries and refuses, the file of all settings, and the lines that it prints."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.support.commands import exit_status
from unified.errors import UnifiedError
from unified.tasks.metrics.length_tuning import LengthScores

#: Of each sentence the reference, and hypotheses with their log-probability in bits: two words are more probable.
SENTENCES = [("a b c d", [("a b", -3.0), ("a b c d", -4.0)]), ("e f g h", [("e f", -3.0), ("e f g h", -4.0)])]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> None:
    """Output of fairseq-generate, and references of other words."""
    monkeypatch.chdir(tmp_path)
    lines = []
    for i, (reference, hypotheses) in enumerate(SENTENCES):
        lines += [f"S-{i}\tx", f"T-{i}\t{reference}"]
        for text, score in hypotheses:
            tokens = len(text.split()) + 1  # with the end symbol
            scores = " ".join([str(score / tokens)] * tokens)
            lines += [f"H-{i}\t-1.0\t{text}", f"D-{i}\t-1.0\t{text}", f"P-{i}\t{scores}"]
    Path("out").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    Path("others").write_text("a b\ne x\n", encoding="utf-8")


def tried(capsys, *options: str) -> list[LengthScores]:
    """All settings that were tried, best first."""
    assert exit_status("tune-lengths", "out", "--json", *options) == 0
    return [LengthScores(**one) for one in json.loads(capsys.readouterr().out)["tried"]]


def test_eleven_exponents_are_tried_without_limits_and_ten_are_shown(capsys):
    assert exit_status("tune-lengths", "out") == 0
    head, names, *rows, options = capsys.readouterr().out.splitlines()
    assert head == "4 hypotheses of 2 sentences; 11 settings tried, best first:"
    assert names == "lenpen  min  max  ROUGE-1  ROUGE-2  ROUGE-L  outside" and len(rows) == 10
    found = tried(capsys)
    assert sorted(one.lenpen for one in found) == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1, 1.2, 1.4, 1.6, 1.8, 2])
    assert {(one.min_length, one.max_length, one.outside) for one in found} == {(0, 4, 0)}  # the end is not counted
    # ((5 + 3) / 6) ** x against ((5 + 5) / 6) ** x: the longer one is better where (10 / 8) ** x > 4 / 3.
    assert all((one.rouge1 == 100) == (one.lenpen > 1.29) for one in found)
    assert [one.lenpen for one in found[:4]] == [1.4, 1.6, 1.8, 2] and found[4].rouge2 == pytest.approx(50)
    assert rows[0] == "   1.4    0    4   100.00   100.00   100.00        0"
    assert options == "fairseq-generate: --length-penalty unilm --lenpen 1.4 --min-len 0 --max-len-b 4"


def test_the_penalty_and_the_score_that_chooses_are_those_of_the_options(capsys):
    # score / length: -3 / 3 and -4 / 5, so that the exponent 1 is enough. The other references have the short texts.
    found = tried(capsys, "--length-penalty", "fairseq", "--lenpens", "0", "1", "--metric", "rouge1")
    assert [(one.lenpen, one.rouge1) for one in found] == [(1, 100), (0, pytest.approx(200 / 3))]
    found = tried(capsys, "--length-penalty", "fairseq", "--lenpens", "1", "0", "--references", "others")
    assert [one.lenpen for one in found] == [0, 1] and found[0].rouge2 == 50
    for metric in ("rouge1", "rouge2", "rougeL"):
        scores = [vars(one)[metric] for one in tried(capsys, "--metric", metric)]
        assert scores == sorted(scores, reverse=True) and len(set(scores)) == 2


def test_limits_of_length_are_tried_in_all_combinations_that_a_hypothesis_meets(capsys):
    options = ("--lenpens", "0", "--min-lengths", "0", "3", "--max-lengths", "0", "2", "3", "9")
    found = tried(capsys, *options)
    assert sorted((one.min_length, one.max_length, one.outside) for one in found) == [
        (0, 2, 0), (0, 3, 0), (0, 9, 0), (3, 9, 0),
    ]  # fmt: skip
    assert (found[0].min_length, found[0].max_length, found[0].rouge2) == (3, 9, 100)


def test_limits_that_are_left_out_are_counted_and_equal_values_are_tried_once(capsys):
    words = ["tune-lengths", "out", "--lenpens", "0", "2", "0.0", "2", "--min-lengths", "0", "0"]
    assert exit_status(*words, "--max-lengths", "4", "1", "0", "4") == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[0] == "4 hypotheses of 2 sentences; 2 settings tried, best first:"
    assert err == "limits that no hypothesis meets are left out: 2; the hypotheses have 2 to 4 tokens\n"
    assert exit_status(*words) == 0 and capsys.readouterr().err == ""


def test_of_settings_with_equal_scores_the_one_that_more_sentences_meet_is_recommended(capsys):
    sentences = [f"S-{i}\tx\nT-{i}\t{text}\nH-{i}\t-1\t{text}\nD-{i}\t-1\t{text}\nP-{i}\t{'-1 ' * size}\n"
                 for i, (text, size) in enumerate([("a b", 3), ("a", 2)])]  # fmt: skip
    Path("out").write_text("".join(sentences), encoding="utf-8")
    found = tried(capsys, "--lenpens", "0", "--min-lengths", "2", "0")
    assert [(one.min_length, one.outside) for one in found] == [(0, 0), (2, 1)]
    assert found[0].rouge2 == found[1].rouge2


@pytest.mark.parametrize(
    ("options", "says"),
    [
        *(
            (options, "--min-lengths and --max-lengths must be numbers of tokens, at least 0")
            for options in ("--min-lengths -1", "--min-lengths 1 -1", "--max-lengths -1", "--max-lengths 4 -1")
        ),
        *(
            (options, "no hypothesis meets any of --min-lengths and --max-lengths; the hypotheses have 2 to 4 tokens")
            for options in (
                "--min-lengths 5",
                "--min-lengths 5 --max-lengths 9",
                "--min-lengths 3 4 --max-lengths 2",
                "--max-lengths 1",
            )
        ),
        ("--lenpens 1 nan", "--lenpens nan: a text of 5 tokens has no such length penalty"),
        ("--lenpens inf", "--lenpens inf: a text of 5 tokens has no such length penalty"),
        ("--lenpens 99999 --length-penalty fairseq", "--lenpens 99999: a text of 5 tokens has no such length penalty"),
        ("--post-process cnndm", "--post-process cnndm drops sentences; give --sentence-separator"),
        ("--max-words 3", "--max-words and --plain-references go with --post-process"),
    ],
)
def test_limits_and_rules_that_make_no_sense_are_refused(options, says):
    with pytest.raises(UnifiedError) as refused:
        exit_status("tune-lengths", "out", "--output", "tried.json", *options.split())
    assert str(refused.value) == says and not Path("tried.json").exists()


def test_all_settings_are_written_beside_what_is_printed(capsys):
    words = ["--lenpens", "0", "2", "--output", "tried.json"]
    assert exit_status("tune-lengths", "out", *words) == 0
    shown = capsys.readouterr().out.splitlines()
    expected = {
        "length_penalty": "unilm", "metric": "rouge2", "tried": [asdict(one) for one in tried(capsys, *words[:3])],
    }  # fmt: skip
    assert Path("tried.json").read_bytes() == f"{json.dumps(expected, indent=2)}\n".encode()
    assert len(shown) == 5 and [one["lenpen"] for one in expected["tried"]] == [2, 0]
    assert exit_status("tune-lengths", "out", *words, "--overwrite", "--json") == 0
    assert json.loads(capsys.readouterr().out) == expected
    assert expected["tried"][0].keys() == {
        "lenpen",
        "min_length",
        "max_length",
        "rouge1",
        "rouge2",
        "rougeL",
        "outside",
    }


def test_texts_are_cleaned_up_before_they_are_scored(capsys):
    """Cut after two words, all hypotheses are the short ones, and the length makes no difference."""
    cut = tried(capsys, "--post-process", "gigaword", "--max-words", "2", "--lenpens", "0", "2")
    assert len({one.rouge1 for one in cut}) == 1 and cut[0].rouge1 == pytest.approx(200 / 3)


def test_sentences_of_summaries_are_compared_one_by_one_where_a_separator_divides_them(capsys):
    Path("out").write_text("S-0\tx\nT-0\tb | a\nH-0\t-1\ta | b\nD-0\t-1\ta | b\nP-0\t-1 -1\n", encoding="utf-8")
    options = ("--lenpens", "1", "--metric", "rougeL")
    assert (
        tried(capsys, *options)[0].rougeL == 50
        and tried(capsys, *options, "--sentence-separator", "|")[0].rougeL == 100
    )
