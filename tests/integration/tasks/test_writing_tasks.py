"""Generation tasks by their names: from official files to `unified finetune` and `predict`, `.ask`, `.summarize`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.integration.cli.test_task_commands import broken_run
from tests.support import fairseq_runs as fairseq
from tests.support.prepared_python import interpreter
from tests.support.task_folders import language_model, read_and_written, tokenizer, vocabulary
from unified import UnifiedLM
from unified.cli import main
from unified.errors import UnifiedError
from unified.generation.lengths import PairLengths
from unified.reports.result_tables import tables
from unified.reports.results import read_results
from unified.tasks.catalogue import TASKS, task_named
from unified.tasks.composing import ask, summarize
from unified.tasks.datasets.coqa import answer_pairs
from unified.tasks.datasets.question_generation import question_pairs
from unified.tasks.datasets.squad_json import read_squad_file
from unified.tasks.finetuning import Start
from unified.tasks.jobs import job_of
from unified.tasks.metrics import score_generation, score_question_generation
from unified.tasks.metrics.coqa import score_coqa
from unified.tasks.metrics.summaries import POST_PROCESSING
from unified.tasks.settings import Training
from unified.tasks.windows import TokenCounter
from unified.tasks.writing import TokenBudget, Writer, WritingItem, WritingTask
from unified.tasks.writing_scores import scored_answers, scored_questions, scored_texts
from unified.tokenization.spelling import respelt, usual_spelling

NAMES = [f"w{i}" for i in range(8)]
COLOURS = [f"w{i}" for i in range(8, 16)]
MORE = ["colour", "has", "is", "which", ".", "?", "|"]
BUDGET = TokenBudget(TokenCounter(str.split), 100)


def squad_file(path: Path, passages: int, seed: int) -> None:
    """Articles of a passage with four names, each with a colour of its own; every name is asked about.

    Who reads the passage alone can guess the name, and is right in one of four cases.
    """
    rng = np.random.default_rng(seed)
    articles = []
    for number in range(passages):
        chosen = list(zip(rng.permutation(NAMES)[:4].tolist(), rng.permutation(COLOURS)[:4].tolist(), strict=True))
        context = " ".join(f"{name} is {colour} ." for name, colour in chosen)
        questions = [
            {"id": f"{seed}.{number}.{name}", "question": f"which colour has {name} ?",
             "answers": [{"text": name, "answer_start": context.index(name)}]}
            for name, _ in chosen
        ]  # fmt: skip
        articles.append({"title": f"{seed}.{number}", "paragraphs": [{"context": context, "qas": questions}]})
    path.write_text(json.dumps({"version": "1.1", "data": articles}))


@pytest.fixture(scope="module")
def asker(tmp_path_factory):
    """Folder of everything, and what `unified finetune` printed."""
    folder = tmp_path_factory.mktemp("asker")
    (folder / "squad").mkdir()
    squad_file(folder / "squad" / "train-v1.1.json", 880, 0)
    squad_file(folder / "squad" / "dev-v1.1.json", 25, 1)
    language_model(folder / "start", *MORE, width=64, initializer_range=0.125)
    words = [
        "finetune", "squad_qg", "--data", folder / "squad", "--init", folder / "start", "--output", folder / "run",
        "--epochs", 2, "--batch-size", 16, "--lr", 3e-3, "--max-length", 96,
        "--fairseq", "--log-format json",
    ]  # fmt: skip
    command = [interpreter(), "-m", "unified.cli", *map(str, words)]
    result = subprocess.run(command, cwd=fairseq.ROOT, env=fairseq.environment(), capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-3000:]
    return folder, result


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_questions_are_learnt_from_one_command(asker):
    folder, result = asker
    (kept,) = read_results([folder / "run"])
    assert kept["scores"]["test"]["bleu4"] > 95 and kept["scores"]["test"]["questions"] == 100
    assert "UniLM large (published)" in tables([kept]) and kept["task"] == "squad_qg"
    printed = fairseq.printed_command(result.stderr)
    assert kept["command"] == printed
    # 792 of 880 articles are for training, ten epochs of batches of 16 were cut to two.
    assert printed[printed.index("--max-update") + 1] == str(2 * 792 * 4 // 16)
    assert printed[printed.index("--max-source") + 1] == str(96 - 48 - 3)
    dev = read_squad_file(folder / "squad" / "dev-v1.1.json")
    wanted = {question.id: question.text for paragraph in dev for question in paragraph.questions}
    found = {one["id"]: one["text"] for one in lines(folder / "run" / "predictions.test.jsonl")}
    assert found.keys() == wanted.keys()
    assert sum(found[name] == respelt(text) for name, text in wanted.items()) >= 95
    assert set(json.loads((folder / "run" / "results.json").read_text())["data"]) == {
        "train.jsonl", "valid.jsonl", "test.jsonl"
    }  # fmt: skip


def test_the_card_of_the_run_says_how_transformers_writes(asker):
    """Its code is run as it stands, but for the text; transformers leaves spaces beside marks."""
    run = asker[0] / "run"
    card = (run / "README.md").read_text(encoding="utf-8")
    assert "pipeline_tag: text2text-generation\n" in card
    _, own, theirs, *_ = card.split("```python\n")
    for source in ("w1 is w9 . w2 is w12 .", "w7 w8"):
        names: dict = {}
        for code in (own, theirs):
            exec(code.partition("```")[0].replace('"A text ..."', repr(source)), names)
            names["ours" if code is own else "theirs"] = names["model"]
        assert list(map(usual_spelling, names["texts"])) == names["ours"].generate([source], beam=3)


def test_the_command_and_the_handle_ask_the_same(asker, capsys, tmp_path, monkeypatch):
    folder, _ = asker
    dev = read_squad_file(folder / "squad" / "dev-v1.1.json")
    asked = [(p.context, q.answers[0]) for p in dev[:5] for q in p.questions]
    rows = [{"context": context, "answer": answer.text, "start": answer.start} for context, answer in asked]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    output = tmp_path / "out.jsonl"
    words = ["predict", "squad_qg", str(tmp_path / "in.jsonl"), "--model", str(folder / "run"), "--output", str(output)]
    assert main(words) == 0
    lm = UnifiedLM.from_pretrained(folder / "run")
    found = lines(output)
    assert [one["id"] for one in found] == [str(i) for i in range(1, 21)]
    assert [one["text"] for one in found] == [ask(lm, c, a.text, start=a.start) for c, a in asked]
    # A broken run goes on where it stopped.
    complete = output.read_text()
    output.unlink()
    broken_run(monkeypatch, *words)
    partial = Path(f"{output}.partial")
    partial.write_text("".join(complete.splitlines(keepends=True)[:7]) + '{"id": "br')
    assert main(words) == 0 and output.read_text() == complete and not partial.exists()
    capsys.readouterr()
    assert main(["predict", "squad_qg", "--model", str(folder / "run"), json.dumps(rows[0])]) == 0
    assert json.loads(capsys.readouterr().out)["text"] == found[0]["text"]


def test_what_is_not_read_is_said(asker, capsys):
    folder, _ = asker
    lm = UnifiedLM.from_pretrained(folder / "run")
    text = "w1 is w9 . " * 30
    assert (lm.lengths.max_source, lm.lengths.max_target) == (45, 48)
    with pytest.warns(UserWarning, match="1 of 2 texts have more than 45 tokens"):
        found = summarize(lm, [text, "w1 is w9 ."], beam=2)
    assert found == lm.generate(
        [" ".join(text.split()[:45]), "w1 is w9 ."], beam=2, no_repeat_ngram_size=3, max_length=48
    )  # fmt: skip
    assert main(["predict", "texts", "--model", str(folder / "run"), json.dumps({"source": text})]) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["cut"] == 120 - 45
    assert printed.err.endswith("predict: 1 of 1 texts were cut; the model reads the first 45 tokens of a source\n")
    with pytest.raises(UnifiedError, match="got one text"):
        summarize(lm, text)
    # Of a conversation the source has 22 words of history and question, the separator, and a chunk of 22 words.
    writer = Writer(lm, task_named("coqa_free"))
    item = {"context": text, "question": "which colour has w1 ?", "history": [["w2 w3", "w4"]] * 10}
    short = {"context": "w1 is w9 .", "question": "which colour has w1 ?"}
    cut, whole = writer.predict([writer.item(item, 1), writer.item(short, 2)])
    assert cut["cut"] == 30 + 5 - 22 + 120 - 22 and "cut" not in whole


def test_windows_of_a_task(asker, capsys, tmp_path):
    """`unified predict --windows` writes what Python does, says how many windows, and keeps other settings apart."""
    folder, _ = asker
    lm = UnifiedLM.from_pretrained(folder / "run")
    sources = ["w1 is w9 . w2 is w8 . " * 14, "w1 is w9 .", ["w1 | w2 ?", "w3 is w8 . " * 20]]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"source": source}) + "\n" for source in sources))
    words = ["predict", "texts", str(tmp_path / "in.jsonl"), "--model", str(folder / "run"), "--windows"]
    assert main(words) == 0
    printed = capsys.readouterr()
    found = [json.loads(line) for line in printed.out.splitlines()]
    counts = [one.get("windows", 0) for one in found]
    assert counts[0] >= 3 and counts[1] == 0 and counts[2] == 2 and not any("cut" in one for one in found)
    assert printed.err.endswith("predict: 2 of 3 texts were divided into windows\n")
    config = Writer(lm, task_named("texts")).config
    short = lm.shortened(sources, config, max_source=45)
    assert [lm.decode(some[0].tokens) for some in lm.hypotheses(short.ids, config, max_source=0)] == [
        one["text"] for one in found
    ]
    assert short.windows == counts
    with_marks = lm.shortened(sources, config, max_source=45, separator="w1")
    assert set(with_marks.ids[0]) == set(short.ids[0]) - set(lm.encode("w1")) != set(short.ids[0])
    assert summarize(lm, sources[:2], windows=True, max_source=45) == lm.generate(
        sources[:2], windows=True, max_source=45, beam=5, no_repeat_ngram_size=3
    )
    assert main([*words, "--max-source", "30"]) == 0
    more = [json.loads(line).get("windows", 0) for line in capsys.readouterr().out.splitlines()]
    assert more == lm.shortened(sources, config, max_source=30).windows and more[0] > counts[0]
    for option in (["--windows"], ["--max-source", 30]):
        error = refused(capsys, "predict", "classification", "w1 is w9", "--model", folder / "run", *option)
        assert error.endswith(f"{option[0]}: classification is no task that generates text; leave the option out\n")


def refused(capsys, *words) -> str:
    capsys.readouterr()
    assert main([str(word) for word in words]) == 2
    return capsys.readouterr().err


def test_refusals(asker, capsys, tmp_path):
    folder, _ = asker
    model = ("--model", folder / "run")
    assert "needs no head" in refused(capsys, "predict", "squad_qg", "{}", *model, "--head", "x")
    assert "--max-tokens 4096: squad_qg is a generation task, whose batches are 32 texts" in refused(
        capsys, "predict", "squad_qg", "{}", *model, "--max-tokens", 4096
    )
    assert "no field 'answer'; its fields: 'context'" in refused(
        capsys, "predict", "squad_qg", '{"context": "w1"}', *model
    )
    item = '{"context": "w1", "answer": "w2"}'
    assert "the item: the answer 'w2' is not in the passage" in refused(capsys, "predict", "squad_qg", item, *model)
    assert "the field 'source' is empty" in refused(capsys, "predict", "texts", '{"source": []}', *model)
    assert "'source' must be" in refused(capsys, "predict", "texts", '{"source": 3}', *model)
    finetune = ("finetune", "squad_qg", "--data", folder / "squad", "--init", folder / "start", "--output", tmp_path)
    assert "needs no head" in refused(capsys, *finetune, "--head", "classification")
    assert "no settings of 'unilm'" in refused(capsys, *finetune, "--system", "unilm")
    assert "no source has room" in refused(capsys, *finetune, "--max-length", 51)
    elsewhere = ("--data", tmp_path, "--init", folder / "start", "--output", tmp_path / "run")
    assert "no file train-v1.1*.json*" in refused(capsys, "finetune", "squad_qg", *elsewhere)


def test_a_separator_has_to_be_known(tmp_path):
    task = task_named("cnn_dailymail")
    with pytest.raises(UnifiedError, match="no piece for the separator"):
        job_of(task, task.training, Start.of(language_model(tmp_path / "a", max_positions=768)), tmp_path)
    job_of(task, task.training, Start.of(language_model(tmp_path / "b", *MORE, max_positions=768)), tmp_path)


def test_tables_are_extended(tmp_path):
    """UniLM's six token types, and its 768 positions; what is there already stays."""
    task = task_named("cnn_dailymail")
    for shape, wanted in (({}, (6, 768)), ({"token_types": 8, "max_positions": 900}, (8, 900))):
        start = Start.of(language_model(tmp_path / str(wanted), *MORE, **shape))
        config = job_of(task, task.training, start, tmp_path).config
        assert (config.token_types, config.max_positions) == wanted


@pytest.mark.parametrize(
    ("lengths", "read", "written_at_most"),
    [
        (PairLengths(), 640, 125),  # as published, where the model has learned no pairs
        (PairLengths(700, 100, 100), 700, 100),
        (PairLengths(100, 20, 20), 100, 20),
        (PairLengths(0, 0, 60), 900 - 60 - 3, 60),  # trained on whole pairs: what the positions leave
        (PairLengths(850, 0, 60), 900 - 60 - 3, 60),
    ],
)
def test_lengths_are_those_of_fine_tuning(tmp_path, lengths, read, written_at_most):
    lm = UnifiedLM.from_pretrained(language_model(tmp_path / "model", *MORE, max_positions=900))
    lm.lengths = lengths
    writer = Writer(lm, task_named("cnn_dailymail"))
    assert writer.max_source_tokens == read
    assert writer.config.max_length == written_at_most


def test_marks_may_be_repeated(tmp_path):
    """Ids of '.' and '|' for the rule against repeated trigrams, by the task's name."""
    lm = UnifiedLM.from_pretrained(language_model(tmp_path / "model", *MORE, max_positions=900))
    config = Writer(lm, task_named("cnn_dailymail")).config
    known = vocabulary(*MORE)
    assert config.no_repeat_ngram_ignore == {known.index("."), known.index("|")}
    assert (config.beam, config.no_repeat_ngram_size, config.length_penalty, config.max_length) == (5, 3, "unilm", 125)


WRITING = [name for name, task in TASKS.items() if isinstance(task, WritingTask)]


@pytest.mark.parametrize("name", WRITING)
def test_published_settings_fit_a_row(name):
    training = task_named(name).training
    assert training.max_source + training.max_target + 3 <= training.max_length
    assert training.max_source_tokens == training.max_source
    assert task_named(name).decoding["max_length"] <= training.max_target


def test_splits_of_summaries(tmp_path):
    rows = [{"document": f"Rain fell on day {i}. It was cold.", "summary": f"day {i} was wet"} for i in range(7)]
    rows[3]["summary"] = ""
    for name in ("train", "validation", "test"):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    splits = task_named("gigaword").read(tmp_path, BUDGET)
    assert {split: len(items) for split, items in splits.items()} == {"train": 6, "valid": 6, "test": 6}
    assert splits["test"][0] == WritingItem("1", "Rain fell on day 0. It was cold.", "day 0 was wet")
    rows[5]["summary"] = 3
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(UnifiedError, match=r"test.jsonl, line 6: field 'summary' holds an integer"):
        task_named("gigaword").read(tmp_path, BUDGET)


def test_sentences_of_the_oracle_reach_the_data_folder(tmp_path):
    """`finetune cnn_dailymail` marks sentences, and its objective asks for them."""
    rows = [{"article": "w1 is w2 .\nw3 has w4 .", "highlights": "w3 has w4"}] * 3
    for name in ("train", "valid"):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    start = Start.of(language_model(tmp_path / "start", *MORE, max_positions=768))
    task = task_named("cnn_dailymail")
    job = job_of(task, task.training, start, tmp_path / "run")
    splits = read_and_written(job, tmp_path)
    assert splits["train"][0].oracle == (1,) and splits["train"][0].sentences == (0, len("w1 is w2 . "))
    assert list(job.data.glob("train.*.oracle.bin")) and "extractive=True" in " ".join(job.command(splits, 1, 0))
    assert read_and_written(job, tmp_path) == splits  # made anew after a crash


def test_questions_are_those_of_the_recipe(tmp_path):
    """Windows of the task are those that question_pairs makes, in all three splits."""
    squad_file(tmp_path / "train-v1.1.json", 20, 0)
    squad_file(tmp_path / "dev-v1.1.json", 3, 1)
    (tmp_path / "doclist-test.txt").write_text("0.3\n0.4\n")
    train, dev = (read_squad_file(tmp_path / f"{part}-v1.1.json") for part in ("train", "dev"))
    budget = TokenBudget(TokenCounter(str.split), 12)
    held = [p for p in train if p.title in ("0.3", "0.4")]
    for name, valid, test in (("squad_qg_du", dev, held), ("squad_qg_reversed", held, dev)):
        splits = task_named(name).read(tmp_path, budget)
        for part, items in ((valid, splits["valid"]), (test, splits["test"])):
            expected = question_pairs(part, budget.counter, 12)
            assert [(i.id, i.source, i.target, i.reference_group) for i in items] == [
                (p.id, p.source, p.target, p.sentence) for p in expected
            ]
        assert len(splits["train"]) == 18 * 4
    sentences = task_named("squad_qg_sentence")
    for part, items in (("train", train), ("valid", train), ("test", dev)):
        expected = {pair.id: pair for pair in question_pairs(items, budget.counter, 12, sentences=True)}
        found = sentences.read(tmp_path, budget)[part]
        assert found and all(item.source == expected[item.id].source for item in found)
    paragraph, question = train[0], train[0].questions[0]
    fields = {"context": paragraph.context, "answer": question.answers[0].text, "start": question.answers[0].start}
    assert sentences.item(fields, 1, budget).source == sentences.read(tmp_path, budget)["train"][0].source
    (tmp_path / "doclist-test.txt").unlink()
    with pytest.raises(UnifiedError, match=r"doclist-test.txt: no such file"):
        task_named("squad_qg_du").read(tmp_path, budget)


def test_turns_of_conversations(unified_data, tmp_path):
    from unified.tasks.datasets.coqa_json import read_coqa_file

    source = unified_data / "coqa_abg"
    for name, file in (("train", "coqa_abg_val"), ("dev", "coqa_abg_test_part1")):
        (tmp_path / f"coqa-{name}-v1.0.json.xz").symlink_to(source / f"{file}.json.xz")
    budget = TokenBudget(TokenCounter(str.split), 200)
    items = task_named("coqa_free").read(tmp_path, budget)["valid"]
    turns = read_coqa_file(source / "coqa_abg_test_part1.json.xz")
    pairs = list(answer_pairs(turns, budget.counter, 96, 200))
    assert [item.source for item in items] == [pair.source for pair in pairs] and len(items) > 500
    assert [item.unread or 0 for item in items] == [pair.unread for pair in pairs] and any(
        item.unread for item in items
    )
    turn = turns[0]
    fields = {"context": turn.passage, "question": turn.question, "history": [list(said) for said in turn.history]}
    assert task_named("coqa_free").item(fields, 1, budget).source == items[0].source
    made = task_named("coqa_free").official(items[:1], [{"id": items[0].id, "text": "red"}])
    assert made == {"predictions.json": [{"id": turn.story, "turn_id": turn.number, "answer": "red"}]}


def test_scores_are_those_of_the_metrics():
    texts = ["What year was it?", "Who was (not) there?", "Who came?"]
    items = [
        WritingItem("1", "s", "What year was it?", reference_group="A b."),
        WritingItem("2", "s", "Who wasn't there?", reference_group="C d."),
        WritingItem("3", "s", "Who came then?", reference_group="C d."),
    ]
    references = ["what year was it ?", "who was n't there ?", "who came then ?"]
    plain = scored_questions(items, texts, bert_words=False).scores()
    assert (
        plain
        == score_question_generation(
            ["what year was it ?", "who was -lrb- not -rrb- there ?", "who came ?"],
            references,
            ["A b.", "C d.", "C d."],
            form="penn-treebank",
        ).to_dict()
    )
    apart = ["what year was it ?", "who was ( not ) there ?", "who came ?"]
    signed = {"signature": plain["signature"].replace("penn-treebank", "bert-words")}
    assert signed["signature"] != plain["signature"]
    assert scored_questions(items, apart, bert_words=True).scores() == plain | signed
    several = [WritingItem("1", ("a b", "4 c"), "four", ("four", "4")), WritingItem("2", "s", "no", ("no", "never"))]
    answered = scored_answers(several, ["4", "yes"], False).scores()
    assert answered.pop("signature") == "rules:coqa|refs:leave-one-out"
    assert answered == score_coqa([["four", "4"], ["no", "never"]], ["4", "yes"])
    scored = scored_texts(several, ["4", "never"], False).scores()
    expected = score_generation(["4", "never"], [["four", "4"], ["no", "never"]], sources=["a b 4 c", "s"]).to_dict()
    assert scored == expected and scored["source_words"] == 50
    rules, text = POST_PROCESSING["cnndm"], "He didn't pay the whole sum yet. | Too short."
    item = WritingItem("1", "s", "He didn't pay the sum. | It was high then, too.")
    cleaned = scored_texts([item], [text], False, separator="|", post_processing="cnndm").scores()
    expected = score_generation(
        [rules(text, "|")], [[rules.in_form(item.target, "|")]], sentence_separator="|", sources=["s"]
    ).to_dict()  # fmt: skip
    assert cleaned == {**expected, "post_process": str(rules)} and "Too short" not in rules(text, "|")


def test_changes_keep_what_belongs_to_writing():
    from unified.tasks.catalogue import with_changes

    training = with_changes(task_named("squad_qg").training, epochs=3, max_length=None)
    assert (training.epochs, training.max_length, training.max_target) == (3, 512, 48)
    assert isinstance(training, Training) and tokenizer(*MORE).encode("w1 ?") == ["w1", "?"]
