"""``unified evaluate`` on models that were imported from transformers with random weights."""

import json

import pytest

from tests.support.published_models import WORDS, published
from unified.cli import main
from unified.evaluation.names import SENTENCES
from unified.reports.result_tables import tables
from unified.reports.results import read_results


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bert")
    published("bert", folder)
    return folder / "ours"


@pytest.fixture
def pairs(tmp_path):
    folder = tmp_path / "pairs"
    folder.mkdir()
    for number, paradigm in enumerate(("agreement", "islands")):
        rows = [
            {
                "sentence_good": f"the {WORDS[1 + (i + number) % 8]} sat .",
                "sentence_bad": f"the {WORDS[1 + (3 * i) % 8]} sat .",
                "UID": paradigm,
                "field": "syntax",
            }
            for i in range(12)
        ]
        (folder / f"{paradigm}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def refused(capsys, *words):
    """What a command says that cannot do what it is asked for: one line on standard error."""
    capsys.readouterr()
    assert main(list(map(str, words))) == 2
    captured = capsys.readouterr()
    assert not captured.out and captured.err.count("\n") == 1
    return captured.err


def test_minimal_pairs_as_a_table_as_json_and_as_results(model, pairs, tmp_path, capsys):
    words = ["evaluate", "minimal-pairs", str(pairs), "--model", str(model), "--scoring", "both", "--intervals"]
    words += ["--resamples", "20"]
    assert main([*words, "--json", "--output", str(tmp_path / "out"), "--run", "bert"]) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert found["scoring"] == "left_to_right+right_to_left" and found["pairs"] == 24 and found["ties"] > 0
    assert found["accuracy"] == pytest.approx(sum(found["paradigm"].values()) / 2)
    assert found["intervals"]["accuracy"][0] <= found["accuracy"] <= found["intervals"]["accuracy"][1]
    # The decoding scheme of an imported model is all that is known of what it has learnt; it is said once of each.
    assert captured.err.count("note: scoring 'left_to_right': the model has not learnt it") == 1
    [result] = read_results([tmp_path / "out"])
    assert result["scores"]["pairs"]["accuracy"] == found["accuracy"] and result["details"]["tied"] == found["tied"]
    assert result["command"][:3] == ["unified", "evaluate", "minimal-pairs"]
    assert f"| bert | 1 | {found['accuracy']:.2f} | {found['accuracy']:.2f} |" in tables([result])
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"minimal pairs, scoring left_to_right+right_to_left: 24 pairs, {found['ties']} ties"
    assert [line.split(" | ")[1] for line in lines[4:]] == ["mean over paradigms", "syntax", "agreement", "islands"]
    assert refused(capsys, *words, "--output", tmp_path / "out").endswith("there already; --overwrite replaces it\n")


def test_what_a_model_has_learnt_is_the_default(model, pairs, capsys):
    assert main(["evaluate", "minimal-pairs", str(pairs), "--model", str(model)]) == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("minimal pairs, scoring pseudo_likelihood: 24 pairs, ")
    assert "note:" not in captured.err


def test_refusals_are_one_line(model, pairs, tmp_path, capsys):
    known = ", ".join((*SENTENCES, "both"))
    for words, message in [
        (
            [pairs, "--model", "nothing.pt", "--scoring", "left_to_rigt"],
            f"no scoring 'left_to_rigt' (did you mean 'left_to_right'?); there are {known}",
        ),
        ([tmp_path / "no", "--model", model], f"{tmp_path / 'no'}: no such file or folder"),
        ([model, "--model", model], f"{model}: no minimal pairs; BLiMP's files"),
    ]:
        err = refused(capsys, "evaluate", "minimal-pairs", *words)
        assert err.startswith(f"unified evaluate: error: {message}")


def test_perplexity_of_a_text(model, tmp_path, capsys):
    (tmp_path / "text.txt").write_text("the cat sat on a mat .\n\nthe dog sang\n")
    words = ["evaluate", "perplexity", str(tmp_path / "text.txt"), "--model", str(model), "--window", "5"]
    assert main([*words, "--json", "--intervals", "--output", str(tmp_path / "out")]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["scoring"], found["window"], found["stride"]) == ("pseudo_likelihood", 5, 2)
    assert (found["documents"], found["tokens"], found["bytes"], found["unknown"]) == (2, 10, 34, 0)
    assert found["bits_per_byte"] == found["bits_per_character"] and set(found["intervals"]) >= {"token_perplexity"}
    assert "| ours | 1 |" in tables(read_results([tmp_path / "out"]))
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "scoring pseudo_likelihood: 2 documents, 10 tokens, 10 words, 34 bytes; 0 tokens unknown"
    assert lines[4] == f"| token perplexity | {found['token_perplexity']:.3f} |"
    for more, message in [
        (["--scoring", "both"], "--scoring both: perplexity takes one scoring, not a sum of 2"),
        (["--stride", "6"], "--stride 6: a window has 5 tokens, and can score no more"),
    ]:
        assert message in refused(capsys, *words, *more)
    says = "--stride 600: a window has 500 tokens, and can score no more"
    absent = ["evaluate", "perplexity", "nowhere", "--model", "nothing", "--window", "500"]
    assert says in refused(capsys, *absent, "--stride", "600")  # before anything is read
    assert "can score no more" in refused(capsys, *words[:5], "--stride", "600")
    assert main([*words, "--stride", "5"]) == 0 and "| token perplexity |" in capsys.readouterr().out


def test_similarity_of_texts_in_rows_of_ones_own_and_of_sts(model, tmp_path, capsys):
    texts = [("the cat sat", "the cat sat ."), ("a dog sang", "on a mat"), ("the bird", "a bird"), ("a", "the mat .")]
    rows = [{"text": a, "second": b, "label": 5 - i} for i, (a, b) in enumerate(texts)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    cells = [["main", "file", "2012", str(i), str(5 - i), a, b] for i, (a, b) in enumerate(texts)]
    (tmp_path / "sts-dev.tsv").write_text("".join("\t".join(row) + "\n" for row in cells))
    own = [{"left": row["text"], "right": row["second"], "score": row["label"]} for row in rows]
    (tmp_path / "own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in own))
    fields = ["--text-field", "left", "--second-field", "right", "--label-field", "score"]
    found = []
    for words in (["rows.jsonl"], ["sts-dev.tsv"], ["own.jsonl", *fields]):
        words = ["evaluate", "similarity", str(tmp_path / words[0]), "--model", str(model), *words[1:]]
        assert main([*words, "--json", "--intervals", "--resamples", "9"]) == 0
        found.append(json.loads(capsys.readouterr().out))
    assert found[0] == found[1] == found[2] and found[0]["total"] == 4 and -100 <= found[0]["pearson"] <= 100
    assert main([*words, "--pooling", "cls", "--output", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out.startswith("4 pairs, pooling cls\npearson ")
    assert read_results([tmp_path / "out"])[0]["settings"]["text-field"] == "left"
    (tmp_path / "alone.jsonl").write_text('{"text": "a", "label": 1}\n')
    message = refused(capsys, "evaluate", "similarity", tmp_path / "alone.jsonl", "--model", model)
    assert "alone.jsonl, item 1: no second text" in message
