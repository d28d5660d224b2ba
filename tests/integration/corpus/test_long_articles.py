"""README's summarization commands on articles longer than a row, and what later commands read of such articles."""

from __future__ import annotations

import json
import logging
import math
import random

import pytest
import sacrebleu
from rouge_score.rouge_scorer import RougeScorer

from tests.support import fairseq_runs as fairseq
from tests.support.corpora import jsonl
from tests.support.readme_commands import run_readme
from unified import UnifiedLM
from unified.checkpoints import load_checkpoint, save
from unified.cli import main
from unified.data.token_files import TokenFile
from unified.generation import GenerationConfig
from unified.tasks.composing import summarize
from unified.tasks.metrics.outputs import read_generate_output

ROW = 512
SPECIAL = 3
WORDS = ["".join(random.Random(n).choices("aeioustnrl", k=5)) for n in range(300)]


def sentence(rng, words):
    return " ".join(rng.choices(WORDS, k=words)).capitalize() + "."


def article(rng):
    return " ".join(sentence(rng, 12) for _ in range(rng.randint(36, 150)))


@pytest.fixture(scope="module")
def readme(tmp_path_factory):
    """The folder in which all commands of the README have run, and what each said."""
    folder, rng = tmp_path_factory.mktemp("readme"), random.Random(1)
    for name, documents in (("corpus.txt", 60), ("valid.txt", 6)):
        texts = ("\n".join(sentence(rng, 12) for _ in range(8)) for _ in range(documents))
        (folder / name).write_text("\n\n".join(texts) + "\n", encoding="utf-8")
    for part, count in (("train", 24), ("valid", 4), ("test", 6)):
        rows = [
            {"article": article(rng), "summary": " ".join(sentence(rng, rng.randint(4, 20)) for _ in range(2))}
            for _ in range(count)
        ]
        jsonl(folder / f"{part}.jsonl", rows)
    return folder, run_readme(folder)


def rows(folder, part):
    return [json.loads(line) for line in (folder / f"{part}.jsonl").read_text().splitlines()]


def sizes(folder, part, side):
    return (TokenFile(folder / "data" / "summaries" / f"{part}.source-target.{side}").sizes - 1).tolist()


def expected(folder):
    """(max_source, max_target) by the rule of the documentation, for these data."""
    target = max(sizes(folder, "train", "target"))
    assert target <= (ROW - SPECIAL) // 4
    return ROW - SPECIAL - target, target


def test_articles_are_longer_than_rows_and_are_cut_once(readme):
    folder, done = readme
    lengths = sizes(folder, "train", "source") + sizes(folder, "test", "source")
    assert 600 <= min(lengths) and max(lengths) <= 3000 and max(lengths) > 2000
    most, target = expected(folder)
    names = [words[0] for words, *_ in done]
    assert names == ["unified", "unified", "unified", "fairseq-train", "fairseq-generate", "unified"]
    log = done[3][1] + done[3][2]
    why = f"(so that pairs fit into rows of {ROW} tokens)"
    for part, count in (("train", 24), ("valid", 4)):
        said = [line for line in log.splitlines() if f"| {part}: " in line and "sources are cut" in line]
        assert len(said) == 1, said
        assert said[0].endswith(f"{part}: {count} of {count} sources are cut to their first {most} tokens {why}")
    assert "train: 1 of" not in log and "targets are cut" not in done[4][1] + done[4][2]
    checkpoint = load_checkpoint(folder / "models" / "summaries" / "checkpoint_best.pt")
    assert checkpoint["task_state"]["pair_lengths"] == {
        "max_source": most, "max_target": target, "longest_target": target
    }  # fmt: skip
    said = [line for line in (done[4][1] + done[4][2]).splitlines() if "are cut" in line]
    assert len(said) == 1 and f"test: 6 of 6 sources are cut to their first {most} tokens (as in training)" in said[0]
    assert "ROUGE-L" in done[5][1]


def test_every_command_reads_the_same_sources(readme, tmp_path, capsys):
    """fairseq-generate, `unified generate`, a text file, Python: the same texts, of sources cut as in training."""
    folder, done = readme
    most, target = expected(folder)
    written, references = read_generate_output([folder / "generated.txt"])
    assert references == [row["summary"] for row in rows(folder, "test")]
    sources = [line.partition("\t")[2] for line in done[4][1].splitlines() if line.startswith("S-")]
    lm = UnifiedLM.from_pretrained(folder / "models" / "summaries", folder / "data" / "summaries")
    assert {len(lm.encode(source)) for source in sources} <= {
        most - 1,
        most,
        most + 1,
    }  # the last piece may be half a word
    (lengths,) = {(lm.lengths.max_source, lm.lengths.max_target)}
    assert lengths == (most, target)

    articles = [row["article"] for row in rows(folder, "test")]
    options = ["--model", str(folder / "models" / "summaries"), "--no-repeat-ngram-size", "3"]
    data = str(folder / "data" / "summaries")
    assert main(["generate", data, *options, "--output", str(tmp_path / "folder.txt")]) == 0
    (tmp_path / "articles.txt").write_text("".join(f"{text}\n" for text in articles))
    plain = ["--input", str(tmp_path / "articles.txt"), "--output", str(tmp_path / "file.txt")]
    assert main(["generate", data, *options, *plain]) == 0
    assert capsys.readouterr().err.count(f"6 of these 6 sources were cut to their first {most} tokens\n") == 2
    found = [read_generate_output([tmp_path / f"{n}.txt"], need_references=False)[0] for n in ("folder", "file")]
    with pytest.warns(UserWarning, match=f"^6 of 6 texts have more than {most} tokens; the rest is not read$"):
        in_python = lm.generate(articles, no_repeat_ngram_size=3)
    with pytest.warns(UserWarning, match=f"^6 of 6 texts have more than {most} tokens"):
        summaries = summarize(lm, articles)
    assert found[0] == found[1] == in_python == summaries == written
    longest = max(len(line.split("\t")[2].split()) for line in done[4][1].splitlines() if line.startswith("H-"))
    assert longest == target  # the model has not learned to end
    by_hand = [lm.encode(text)[:most] for text in articles]
    hypotheses = lm.hypotheses(by_hand, GenerationConfig(no_repeat_ngram_size=3, max_length=target), max_source=0)
    assert [lm.decode(some[0].tokens) for some in hypotheses] == written


@pytest.fixture
def in_process(readme, capsys, caplog):
    """Runs a command of fairseq in this process; returns what it printed, and its log."""

    def run_it(command, *arguments):
        capsys.readouterr()
        caplog.clear()
        data, model = readme[0] / "data" / "summaries", readme[0] / "models" / "summaries" / "checkpoint_best.pt"
        chosen = () if "--path" in arguments else ("--path", model)
        with caplog.at_level(logging.INFO):
            fairseq.in_this_process(command, data, *fairseq.PLUGINS, *chosen, *arguments)
        return capsys.readouterr().out, caplog.text

    return run_it


def test_an_option_overrides_what_a_model_was_trained_with(readme, in_process, capsys, tmp_path):
    folder, _ = readme
    out, log = in_process("generate", "--max-source", 40, "--max-target", 5, "--beam", 2)
    assert "test: 6 of 6 sources are cut to their first 40 tokens (--max-source)" in log
    (tmp_path / "cut.txt").write_text(out)
    written, references = read_generate_output([tmp_path / "cut.txt"])
    assert references == [row["summary"] for row in rows(folder, "test")]  # whole, whatever --max-target says
    lm = UnifiedLM.from_pretrained(folder / "models" / "summaries", folder / "data" / "summaries")
    articles = [row["article"] for row in rows(folder, "test")]
    assert written == lm.generate(articles, max_source=40, max_length=5, beam=2)
    assert all(len(line.split("\t")[2].split()) <= 5 for line in out.splitlines() if line.startswith("H-"))
    with pytest.raises(SystemExit, match="--max-source 0: the longest source has .* leave room for 508"):
        in_process("generate", "--max-source", 0)
    options = ["--model", str(folder / "models" / "summaries"), "--output", str(tmp_path / "out"), "--max-source", "0"]
    assert main(["generate", str(folder / "data" / "summaries"), *options]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert "the model's 512 positions leave room for" in error and "max_length" not in error


def test_interactive_and_validation_read_as_in_training(readme, in_process, tmp_path):
    folder, _ = readme
    most, target = expected(folder)
    articles = [row["article"] for row in rows(folder, "test")]
    (tmp_path / "articles.txt").write_text("".join(f"{text}\n" for text in articles))
    lm = UnifiedLM.from_pretrained(folder / "models" / "summaries", folder / "data" / "summaries")
    out, log = in_process("interactive", "--input", tmp_path / "articles.txt")
    assert log.count(f"sources are cut to their first {most} tokens (as in training)") == 1
    texts = [line.split("\t")[2] for line in out.splitlines() if line.startswith("D-")]
    assert texts == lm.generate(articles, max_source=most)

    _, log = in_process("validate", "--valid-subset", "test", "--max-tokens", 4096)
    assert f"test: 6 of 6 sources are cut to their first {most} tokens (as in training)" in log


def measured(log):
    """What fairseq-validate says of the split "test"."""
    (line,) = [line for line in log.splitlines() if "valid on 'test' subset" in line]
    words = line.partition("subset | ")[2].replace("|", " ").split()
    return {name: float(value) for name, value in zip(words[::2], words[1::2], strict=True)}


def test_generated_texts_are_compared_with_whole_references(readme, in_process):
    folder, _ = readme
    most, _ = expected(folder)
    articles, references = zip(*((row["article"], row["summary"]) for row in rows(folder, "test")), strict=True)
    lm = UnifiedLM.from_pretrained(folder / "models" / "summaries", folder / "data" / "summaries")
    written = lm.generate(articles, max_source=most, max_length=25, beam=1)
    cut = [lm.decode(lm.encode(reference)[:25]) for reference in references]
    scorer = RougeScorer(["rouge1", "rouge2", "rougeL"], use_stemmer=True)

    def rouge(wanted):
        each = [scorer.score(*pair)["rouge1"].fmeasure for pair in zip(wanted, written, strict=True)]
        return round(100 * sum(each) / len(each), 2)

    assert rouge(cut) != rouge(references) > 0
    options = ("--valid-subset", "test", "--max-tokens", 4096, "--max-target", 25)
    found = measured(in_process("validate", *options)[1])
    assert found["rouge1"] == rouge(references)
    overrides = str({"eval_generate": "bleu", "best_checkpoint_metric": "bleu"})
    bleu = measured(in_process("validate", *options, "--model-overrides", overrides)[1])
    whole, shortened = (sacrebleu.corpus_bleu(written, [list(wanted)]).score for wanted in (references, cut))
    assert bleu["bleu"] == pytest.approx(whole, abs=0.01) and abs(whole - shortened) > 0.02
    # Losses are of the targets that training learns, whatever is generated.
    assert found["loss"] == bleu["loss"] != measured(in_process("validate", *options[:4])[1])["loss"]


def test_references_are_scored_whole_in_their_cut_sources(readme, in_process):
    folder, _ = readme
    most, _ = expected(folder)
    out, log = in_process("generate", "--score-reference", "--max-target", 4)
    lm = UnifiedLM.from_pretrained(folder / "models" / "summaries", folder / "data" / "summaries")
    test = rows(folder, "test")
    with pytest.warns(UserWarning, match=f"6 of 6 texts have more than {most} tokens"):
        scores = lm.score([row["article"] for row in test], [row["summary"] for row in test])
    found = {int(line[2:].split("\t")[0]): line.split("\t")[1] for line in out.splitlines() if line.startswith("P-")}
    for number, values in enumerate(scores):
        bits = [value / math.log(2) for value in values]
        assert [float(value) for value in found[number].split()] == pytest.approx(bits, abs=2e-4)
    with pytest.raises(SystemExit, match="--score-reference: 6 of 6 sources have no room beside their targets"):
        in_process("generate", "--score-reference", "--max-source", 505)


def test_models_of_an_ensemble_agree_or_are_told(readme, in_process, tmp_path):
    folder, _ = readme
    first = folder / "models" / "summaries" / "checkpoint_best.pt"
    content = load_checkpoint(first)
    content["task_state"]["pair_lengths"]["max_source"] = 0
    save(content, tmp_path / "whole.pt")
    both = ("--path", f"{first}:{tmp_path / 'whole.pt'}", "--beam", 1)
    with pytest.raises(SystemExit, match="--path: the models were trained with --max-source 0, .*choose one"):
        in_process("generate", *both)
    out, _ = in_process("generate", *both, "--max-source", 30)
    alone, _ = in_process("generate", "--beam", 1, "--max-source", 30)
    texts = [[line.split("\t")[2] for line in text.splitlines() if line.startswith("H-")] for text in (out, alone)]
    assert texts[0] == texts[1] and len(texts[0]) == 6
