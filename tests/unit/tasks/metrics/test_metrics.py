"""Scores against definitions written out here, against sacrebleu's own functions, and against values made by hand."""

import json
import math
import random
from collections import Counter
from functools import cache

import numpy as np
import pytest
import sacrebleu

from unified.cli import main
from unified.data.token_files import TokenFileWriter
from unified.data.vocabulary import Vocabulary
from unified.errors import UnifiedError
from unified.tasks.metrics import (
    character_similarity,
    folder_unigram_entropy,
    score_generation,
    unigram_entropy,
)
from unified.tasks.metrics.outputs import is_generate_output, read_generate_output, read_lines

WORDS = "the cat sat on a mat and dog ran to big red house with its tail".split()


def sentences(rng: random.Random, count: int, longest: int = 12) -> list[str]:
    return [" ".join(rng.choices(WORDS, k=rng.randint(1, longest))) for _ in range(count)]


def systems(rng: random.Random, count: int) -> tuple[list[str], list[str], list[str]]:
    """Hypotheses, references that most of their words are taken from, and unrelated second references."""
    references = sentences(rng, count)
    noisy = [" ".join(w if rng.random() < 0.8 else rng.choice(WORDS) for w in r.split()) for r in references]
    hypotheses = [" ".join(n.split()[: rng.randint(1, 12)]) for n in noisy]
    return hypotheses, references, sentences(rng, count)


# --------------------------------------------------- similarity of strings


def distance_by_definition(a: str, b: str) -> int:
    @cache
    def distance(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        same = distance(i - 1, j - 1) + (a[i - 1] != b[j - 1])
        return min(same, distance(i - 1, j) + 1, distance(i, j - 1) + 1)

    return distance(len(a), len(b))


def test_similarity_is_its_definition():
    rng = random.Random(1)
    for _ in range(600):
        alphabet = rng.choice(["ab", "abcd", "aé𝄞中"])
        a, b = ("".join(rng.choices(alphabet, k=rng.randint(0, 12))) for _ in range(2))
        expected = 1 - distance_by_definition(a, b) / max(len(a), len(b), 1)
        assert character_similarity(a, b) == pytest.approx(expected, abs=1e-12), (a, b)


def test_similarity_by_hand():
    assert character_similarity("", "") == 1
    assert character_similarity("abc", "") == 0
    assert character_similarity("kitten", "sitting") == pytest.approx(1 - 3 / 7)


# --------------------------------------------------------------- generation


def lcs(a: list[str], b: list[str]) -> int:
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            table[i + 1][j + 1] = table[i][j] + 1 if x == y else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


def f1(matches: int, found: int, wanted: int) -> float:
    return 0.0 if not matches else 2 * matches / (found + wanted)  # harmonic mean of matches/found and matches/wanted


def rouge_by_definition(hypothesis: str, reference: str, kind: str) -> float:
    h, r = hypothesis.split(), reference.split()
    if kind == "rougeL":
        return f1(lcs(h, r), len(h), len(r))
    n = int(kind[-1])
    grams = [Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1)) for words in (h, r)]
    return f1(sum((grams[0] & grams[1]).values()), *(sum(g.values()) for g in grams))


def test_bleu_is_sacrebleus():
    rng = random.Random(2)
    hypotheses, first, second = systems(rng, 60)
    one = score_generation(hypotheses, first)
    assert one.bleu == pytest.approx(sacrebleu.corpus_bleu(hypotheses, [first]).score)
    assert one.bleu_signature == f"nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:{sacrebleu.__version__}"
    two = score_generation(hypotheses, list(zip(first, second, strict=True)))
    assert two.bleu == pytest.approx(sacrebleu.corpus_bleu(hypotheses, [first, second]).score)
    assert two.bleu > one.bleu
    characters = score_generation(hypotheses, first, bleu_tokenizer="char")
    assert characters.bleu == pytest.approx(sacrebleu.corpus_bleu(hypotheses, [first], tokenize="char").score)
    assert "tok:char" in characters.bleu_signature


@pytest.mark.parametrize("kind", ["rouge1", "rouge2", "rougeL"])
def test_rouge_is_the_definition(kind):
    rng = random.Random(3)
    hypotheses, first, second = systems(rng, 80)
    scores = score_generation(hypotheses, first, use_stemmer=False)
    expected = [rouge_by_definition(h, r, kind) for h, r in zip(hypotheses, first, strict=True)]
    assert getattr(scores, kind) == pytest.approx(100 * np.mean(expected))
    assert "stemmer:no" in scores.rouge_signature and "nrefs:1" in scores.rouge_signature
    best = [
        max(rouge_by_definition(h, r, kind) for r in group) for h, *group in zip(hypotheses, first, second, strict=True)
    ]
    several = score_generation(hypotheses, list(zip(first, second, strict=True)), use_stemmer=False)
    assert getattr(several, kind) == pytest.approx(100 * np.mean(best))


def test_the_stemmer_is_what_the_signature_says():
    stemmed = score_generation(["he was running"], ["he was run"])
    plain = score_generation(["he was running"], ["he was run"], use_stemmer=False)
    assert stemmed.rouge1 == pytest.approx(100) and plain.rouge1 == pytest.approx(200 / 3)
    assert "stemmer:porter" in stemmed.rouge_signature and "stemmer:no" in plain.rouge_signature


def test_summary_level_rouge_matches_sentences_in_any_order():
    hypothesis, reference = "the cat sat . [X_SEP] a dog ran .", "a dog ran . [X_SEP] the cat sat ."
    whole = score_generation([hypothesis.replace("[X_SEP] ", "")], [reference.replace("[X_SEP] ", "")])
    apart = score_generation([hypothesis], [reference], sentence_separator="[X_SEP]")
    assert whole.rougeL == pytest.approx(50)  # the longest common subsequence holds one of the two sentences
    assert apart.rougeL == pytest.approx(100)
    assert "rougeLsum" in apart.rouge_signature and "rougeLsum" not in whole.rouge_signature
    assert apart.bleu == pytest.approx(whole.bleu) and apart.character_similarity == whole.character_similarity


def test_exact_match_and_similarity_by_hand():
    scores = score_generation(["Yes.", "no", "abcd"], ["Yes.", ["nope", "no"], "abcx"])
    assert scores.exact_match == pytest.approx(200 / 3)
    assert scores.character_similarity == pytest.approx(100 * (1 + 1 + 0.75) / 3)
    assert scores.sentences == 3 and json.dumps(scores.to_dict())


def test_references_that_rouge_cannot_read_are_counted():
    scores = score_generation(["中文", "a"], ["中文", "a"])
    assert (scores.without_words, scores.rouge1, scores.exact_match) == (1, 50, 100)


@pytest.mark.parametrize(
    ("hypotheses", "references", "message"),
    [
        ([], [], "nothing to score"),
        (["a"], [], "1 hypothesis but 0 references"),
        (["a", "b"], ["a", []], r"references\[1\]"),
        ("a", ["a"], "list of strings"),
    ],
)
def test_unusable_input_is_refused(hypotheses, references, message):
    with pytest.raises(UnifiedError, match=message):
        score_generation(hypotheses, references)


def test_an_unknown_bleu_tokenizer_is_refused():
    with pytest.raises(UnifiedError, match="13a"):
        score_generation(["a"], ["a"], bleu_tokenizer="moses")


@pytest.mark.parametrize("error", [RuntimeError("needs\nmore"), ImportError("no mecab"), OSError("no network")])
def test_a_bleu_tokenizer_that_cannot_be_had_is_refused(monkeypatch, error):
    def fails(*_, **__):
        raise error

    monkeypatch.setattr("sacrebleu.metrics.bleu.BLEU.__init__", fails)
    with pytest.raises(UnifiedError, match=r"^BLEU tokenizer 'ja-mecab': cannot be had \((needs more|no )"):
        score_generation(["a"], ["a"], bleu_tokenizer="ja-mecab")


# ------------------------------------------------------------------ entropy


def test_unigram_entropy_by_hand():
    assert unigram_entropy(np.arange(8)).bits == pytest.approx(3)
    entropy = unigram_entropy(np.array([[5, 5], [6, 7]]))
    assert entropy.bits == pytest.approx(1.5)
    assert entropy.nats == pytest.approx(1.5 * math.log(2)) and entropy.perplexity == pytest.approx(2**1.5)
    assert unigram_entropy(np.array([5, 5, 6, 7, 2, 2]), ignore=[2, 99]).bits == pytest.approx(1.5)
    assert unigram_entropy(np.array([0, 0, 1, 1]), ignore=[2, 3]).bits == pytest.approx(1)
    assert unigram_entropy(np.array([0, 1]), ignore=[-1]).bits == pytest.approx(1)  # no id is negative
    assert unigram_entropy(np.full(9, 3)).bits == 0


@pytest.mark.parametrize("tokens", [[], [2, 2]])
def test_entropy_of_nothing_is_refused(tokens):
    with pytest.raises(UnifiedError, match="nothing to count"):
        unigram_entropy(np.array(tokens, dtype=np.int64), ignore=[2])


def test_entropy_of_a_folder_counts_ordinary_tokens(tmp_path):
    vocabulary = Vocabulary(["a", "b", "c"])
    vocabulary.save(tmp_path / "dict.txt")
    special = vocabulary.special
    with TokenFileWriter(tmp_path / "train", np.dtype(np.uint16)) as writer:
        for item in (["a", "a"], ["b", "c"], []):
            tokens = np.append(vocabulary.encode(item), [special.separator])
            writer.add(tokens)
        writer.add(np.array([special.mask, special.unknown]))
    assert folder_unigram_entropy(tmp_path).bits == pytest.approx(1.5)


# -------------------------------------------------------- generate's output


def output(*entries: tuple[int, str, str]) -> str:
    lines = ["2024-01-01 00:00:00 | INFO | fairseq_cli.generate | {'task': 'x'}\n"]
    for number, reference, hypothesis in entries:
        lines.append(
            f"S-{number}\tsource\nT-{number}\t{reference}\nH-{number}\t-0.5\tto ken s\n"
            f"D-{number}\t-0.5\t{hypothesis}\nP-{number}\t-0.1 -0.2\n"
        )
    return "".join(lines) + "Generate test with beam=5: BLEU4 = 0.0\n"


def test_shards_are_merged_in_sentence_order(tmp_path):
    one, two = tmp_path / "0.txt", tmp_path / "1.txt"
    one.write_text(output((2, "r2", "h2"), (0, "r0", "h\u20280")), encoding="utf-8")
    two.write_text(output((3, "", ""), (1, "r1\tx", "h1\ty")), encoding="utf-8")
    assert is_generate_output(one)
    assert read_generate_output([two, one]) == (["h\u20280", "h1\ty", "h2", ""], ["r0", "r1\tx", "r2", ""])


def test_of_several_hypotheses_the_first_is_scored(tmp_path):
    text = "T-0\tr\nH-0\t-1\tx\nD-0\t-1\tbest\nP-0\t-1\nH-0\t-2\tx\nD-0\t-2\tsecond\nP-0\t-2\n"
    (tmp_path / "out").write_text(text)
    assert read_generate_output([tmp_path / "out"]) == (["best"], ["r"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (output((0, "r", "h"), (0, "r", "h")), r"line 7: S-0 was already in .*line 2"),
        (output((0, "r", "h"), (2, "r", "h")), "1 of 3 sentences missing, the first is number 1"),
        (output((0, "r", "h"), (1, "r", "h")).replace("T-1\tr\n", ""), "no T- line for sentence 1"),
        (output((0, "r", "h"), (1, "r", "h")).replace("D-1\t-0.5\th\n", ""), "line 7: S-1 has no D-1"),
        (output((0, "r", "h")).replace("D-0\t-0.5\th", "D-0\th"), "line 5: expected 'D-0"),
        ("nothing here\n", "no D- lines"),
    ],
)
def test_broken_output_is_refused_with_its_location(tmp_path, text, message):
    path = tmp_path / "out.txt"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UnifiedError, match=message):
        read_generate_output([path])


def test_the_same_shard_twice_is_refused(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("H-0\t-1\tx\nD-0\t-1\tx\n")
    with pytest.raises(UnifiedError, match="already"):
        read_generate_output([path, path], need_references=False)


def test_lines_end_at_line_feeds_alone(tmp_path):
    (tmp_path / "a").write_bytes("one\u2028still one\x0c\r\n\nthree".encode())
    assert read_lines(tmp_path / "a") == ["one\u2028still one\x0c", "", "three"]


# ------------------------------------------------------------- command line


def write(path, lines) -> str:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return str(path)


def test_scores_of_two_files_and_of_generates_output_agree(tmp_path, capsys):
    hypotheses, references = ["The cat sat.", "a dog"], ["The cat sat.", "A dog."]
    plain = [write(tmp_path / "h", hypotheses), write(tmp_path / "r", references)]
    generated = tmp_path / "generate-test.txt"
    generated.write_text(output((0, references[0], hypotheses[0]), (1, references[1], hypotheses[1])), encoding="utf-8")
    expected = score_generation(hypotheses, references).to_dict()
    words = ["--json", "--output", str(tmp_path / "scores.json"), "--overwrite"]
    for files in (
        plain,
        [str(generated)],
        [str(generated), "--references", plain[1]],
        [plain[0], "--references", plain[1]],
    ):
        assert main(["score", "generation", *files, *words]) == 0
        assert json.loads(capsys.readouterr().out) == expected
        assert json.loads((tmp_path / "scores.json").read_text()) == expected
    assert main(["score", "generation", *plain]) == 0
    shown = capsys.readouterr().out
    assert "exact sentences, %       50.00" in shown and expected["bleu_signature"] in shown


def test_several_reference_files_are_references_of_each_sentence(tmp_path, capsys):
    files = [write(tmp_path / name, lines) for name, lines in (("h", ["x y"]), ("a", ["p q"]), ("b", ["x y"]))]
    assert main(["score", "generation", files[0], "--references", *files[1:], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["exact_match"] == 100


def test_question_generation_from_the_command_line(tmp_path, capsys):
    files = [
        write(tmp_path / "h", ["Who's he?", "What is it?"]),
        write(tmp_path / "r", ["who 's he ?", "what is it ?"]),
    ]
    sources = write(tmp_path / "s", ["s", "t"])
    arguments = ["score", "question-generation", *files, "--sources", sources, "--penn-treebank", "--json"]
    assert main(arguments) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["bleu4"] == pytest.approx(100) and "tok:penn-treebank+" in found["signature"]
    assert main([*arguments[:-1]]) == 0
    assert found["signature"] in capsys.readouterr().out


def broken_inputs(folder) -> dict[str, tuple[list[str], str]]:
    good, longer = write(folder / "good", ["a", "b"]), write(folder / "longer", ["a", "b", "c"])
    empty, binary = write(folder / "empty", []), folder / "binary"
    binary.write_bytes(b"fine\n\xff\xfe\n")
    generated = folder / "generated"
    generated.write_text(output((0, "r", "h")), encoding="utf-8")
    return {
        "unequal": ([good, longer], "3 references for 2 hypotheses"),
        "empty": ([good, empty], "empty: the file is empty"),
        "not UTF-8": ([good, str(binary)], "binary, line 2: not UTF-8"),
        "missing": ([good, str(folder / "nowhere")], "nowhere: no such file"),
        "folder": ([good, str(folder)], "not a file"),
        "one plain file": ([good], "--references"),
        "three plain files": ([good, good, good], "two plain files"),
        "mixed": ([str(generated), good], "expected output of fairseq-generate"),
    }


@pytest.mark.parametrize(
    "case", ["unequal", "empty", "not UTF-8", "missing", "folder", "one plain file", "three plain files", "mixed"]
)
def test_every_unusable_file_is_one_line_of_error(tmp_path, capsys, case):
    files, message = broken_inputs(tmp_path)[case]
    assert main(["score", "generation", *files, "--output", str(tmp_path / "scores.json")]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1 and error.startswith("unified score: error:")
    assert not (tmp_path / "scores.json").exists()
