"""`unified pretrain`: the command line it prints and runs, what it refuses before anything starts, and resuming."""

import shlex
import subprocess

import pytest
import transformers

import unified
from tests.integration.cli.test_task_commands import refused, said
from tests.support.corpora import random_documents, raw_text
from tests.support.fairseq_runs import environment, logged, printed_command
from tests.support.prepared_python import interpreter
from unified import UnifiedLM
from unified.checkpoints import load_checkpoint, save
from unified.cli import main

SMALL = ("--model", "tiny", "--tokens-per-sample", "32", "--max-tokens", "128")


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """``documents`` and ``pairs``, prepared; ``no_valid``: documents without a validation text."""
    folder = tmp_path_factory.mktemp("pretrain")
    (folder / "text").write_text(raw_text(random_documents(30)), encoding="utf-8")
    (folder / "pairs.jsonl").write_text('{"source": "a red tree", "target": "tree"}\n' * 20, encoding="utf-8")
    shared = ["--tokenizer", "char", "--workers", "1"]
    split = ["--valid-share", "0.2"]
    assert main(["prepare", str(folder / "text"), "--output", str(folder / "documents"), *shared, *split]) == 0
    assert main(["prepare", str(folder / "text"), "--output", str(folder / "no_valid"), *shared]) == 0
    fields = ["--source-field", "source", "--target-field", "target"]
    words = [str(folder / "pairs.jsonl"), "--output", str(folder / "pairs"), *fields]
    assert main(["prepare", *words, *shared, *split]) == 0
    return folder


def printed(capsys, *words) -> list[str]:
    """Words of the command of fairseq-train."""
    [line] = said(capsys, "pretrain", *words, "--dry-run")
    return shlex.split(line)


def value(words: list[str], option: str) -> str:
    assert words.count(option) == 1
    return words[words.index(option) + 1]


def test_the_command_is_complete_and_nothing_is_left_behind(data, tmp_path, capsys):
    words = printed(capsys, data / "documents", "--output", tmp_path / "runs" / "x")
    assert words[:2] == ["fairseq-train", str(data / "documents")] and not (tmp_path / "runs").exists()
    assert value(words, "--arch") == "unified_lm_small" and value(words, "--save-dir") == str(tmp_path / "runs" / "x")
    assert value(words, "--objectives") == "bidirectional:2,seq2seq:2,left_to_right:1,right_to_left:1"
    assert value(words, "--total-num-update") == value(words, "--max-update") == "20000"
    assert value(words, "--warmup-updates") == "1000" and "--max-positions" not in words


def test_the_device_is_chosen_and_refused_before_anything_is_read(data, tmp_path, capsys, monkeypatch):
    """On a machine with two GPUs, and on one without."""
    words = (data / "documents", "--output", tmp_path / "x")
    choices = ((2, None, False), (2, "cuda", False), (2, "cpu", True), (0, None, True), (0, "cpu", True))
    for cards, device, on_cpu in choices:
        monkeypatch.setattr("torch.cuda.device_count", lambda cards=cards: cards)
        found = printed(capsys, *words, *(() if device is None else ("--device", device)))
        assert ("--cpu" in found) == on_cpu and ("--distributed-world-size" in found) == on_cpu
    for command in (("pretrain", "nowhere"), ("finetune", "rte", "--data", "nowhere", "--init", "nowhere")):
        asked = (*command, "--output", tmp_path / "x", "--device", "cuda")
        assert "error: --device cuda: PyTorch finds no GPU on this machine; cpu needs none\n" in refused(capsys, *asked)


def test_options_change_it(data, tmp_path, capsys):
    options = ("--model", "bert_tiny", "--objectives", "seq2seq", "--tokens-per-sample", 1024, "--max-update", 40)
    words = printed(capsys, data / "documents", "--output", tmp_path / "x", *options, "--fairseq", "--lr 1 --fp16")
    assert value(words, "--arch") == "bert_tiny" and value(words, "--warmup-updates") == "2"
    # The model has the positions and the token types that rows and objectives need.
    assert value(words, "--max-positions") == "1024" and value(words, "--token-types") == "6"
    assert words[-3:] == ["--lr", "1", "--fp16"]
    words = printed(capsys, data / "pairs", "--output", tmp_path / "x")
    assert value(words, "--objectives") == "target_cloze:1"
    printed(capsys, data / "no_valid", "--output", tmp_path / "x", "--fairseq=--disable-validation")
    xlnet = ("--objectives", "xlnet", "--output", tmp_path / "x")
    printed(capsys, data / "documents", *xlnet, "--model", "xlnet_tiny")
    printed(capsys, data / "documents", *xlnet, "--fairseq", "--positions relative")


@pytest.mark.parametrize(
    ("folder", "options", "says"),
    [
        ("documents", "--model smal", "--model smal: no such model or folder (did you mean 'small'?)"),
        ("documents", "--model gpt", "--model gpt: no such model or folder; they are tiny, mini, small"),
        ("documents", "--objectives seq2sec", "no such objective (did you mean 'seq2seq'?)"),
        ("documents", "--objectives target_cloze", "--objectives 'target_cloze' does not fit"),
        ("pairs", "--objectives bert", "which holds source/target pairs"),
        ("documents", "--objectives xlnet", "--model unified_lm_small: objective xlnet predicts by a query stream"),
        ("documents", "--max-tokens 100", "--max-tokens 100 is less than one row of --tokens-per-sample 512"),
        ("documents", "--max-update 0", "--max-update must be at least 1, got 0"),
        ("documents", "--warmup-updates 20000", "--warmup-updates must be from 0 to below --max-update 20000"),
        ("no_valid", "", "no text to validate on; make the folder with `unified prepare --valid FILE`"),
        ("nowhere", "", "nowhere: no such data folder"),
        ("", "", "holds no prepared data (*.idx)"),
    ],
)
def test_what_cannot_be_trained_is_refused_before_anything_starts(data, tmp_path, capsys, folder, options, says):
    output = tmp_path / "x"
    assert says in refused(capsys, "pretrain", data / folder, "--output", output, *shlex.split(options))
    assert not output.exists()


def test_options_come_from_a_file_and_the_command_line_wins(data, tmp_path, capsys):
    file = tmp_path / "my.yaml"
    file.write_text(
        f"data: {data / 'documents'}\noutput: {tmp_path / 'x'}\nlr: 1e-4\nmax-update: 40\nmodel: mini\n"
        "objectives: 'seq2seq:1, bert: 2'\nfairseq: --fp16\n",
        encoding="utf-8",
    )
    words = printed(capsys, "--config", file)
    assert words[1] == str(data / "documents") and value(words, "--arch") == "unified_lm_mini"
    assert value(words, "--lr") == "0.0001" and value(words, "--max-update") == "40" and words[-1] == "--fp16"
    # An option wins wherever it stands, also where it has the value of its default.
    for order in (("--config", file, "--lr", "3e-4"), ("--lr", "3e-4", f"--config={file}")):
        words = printed(capsys, *order, "--model", "tiny")
        assert value(words, "--lr") == "0.0003" and value(words, "--arch") == "unified_lm_tiny"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("objectivs: bert", "my.yaml: no option 'objectivs' (did you mean 'objectives'?)"),
        ("max_update: 3", "my.yaml: no option 'max_update' (did you mean 'max-update'?)"),
        ("max-update: many", "my.yaml: max-update: 'many' is no value of it"),
        ("lr: [1, 2]", "my.yaml: lr: must be a text or a number, got [1, 2]"),
        ("- lr", "my.yaml: must hold a line 'name: value' for each option"),
        ("lr: [", "my.yaml, line 2: not YAML: "),
        (None, "my.yaml"),
    ],
)
def test_a_file_of_options_is_refused_by_name_and_key(data, tmp_path, capsys, text, says):
    if text is not None:
        (tmp_path / "my.yaml").write_text(text + "\n", encoding="utf-8")
    message = refused(capsys, "pretrain", data / "documents", "--config", tmp_path / "my.yaml", "--output", tmp_path)
    assert says in message and message.count("\n") == 1


def test_choices_and_switches_of_a_file_are_checked(tmp_path, capsys):
    for text, says in (
        ("select: worst", "select: must be one of last, best, got 'worst'"),
        ("chunk: 3", "no option 'chunk'"),
    ):
        (tmp_path / "my.yaml").write_text(f"task: rte\n{text}\n", encoding="utf-8")
        assert says in refused(capsys, "finetune", "--config", tmp_path / "my.yaml")


def test_a_run_is_trained_resumed_and_not_repeated(data, tmp_path, capsys, monkeypatch):
    """The data folder is named from the folder that it is in, then from another one, as the model is opened."""
    output = tmp_path / "run"
    more = ("--output", output, *SMALL, "--max-update", 3)
    options = ("pretrain", data / "documents", *more)
    first = [interpreter(), "-m", "unified.cli", "pretrain", "documents", *map(str, more), "--fairseq=--log-interval 2"]
    result = subprocess.run(first, capture_output=True, text=True, env=environment(), cwd=data)
    assert result.returncode == 0, result.stderr[-3000:]
    assert result.stderr.splitlines()[-2:] == [
        f"the model is in {output}; fine-tune it for a task:",
        f"  unified finetune classification --data FILE.csv --init {output} --output {output}-finetuned",
    ]
    # Beside the checkpoints stands what transformers opens, with the same predictions.
    fill, lm = transformers.pipeline("fill-mask", str(output)), UnifiedLM.from_pretrained(output)
    found = {one["token_str"]: one["score"] for one in fill(f"the {fill.tokenizer.mask_token} tree", top_k=5)}
    ours = {symbol.strip("▁"): probability for symbol, probability in lm.fill_mask("the <mask> tree", top=5)[0]}
    assert ours == pytest.approx(found, rel=1e-3)
    # The first update is shown, though it is not the last of an interval, with the loss that the loop in Python has.
    [first_update] = logged((output / "train.log").read_text(encoding="utf-8"), "first_updates")
    lm = unified.train("tiny", data / "documents", updates=1, tokens_per_sample=32, max_tokens=128, device="cpu")
    assert first_update["loss"] == pytest.approx(lm.history[0]["loss"], abs=6e-4) and first_update["num_updates"] == 1
    assert f"training: 1 of 3 updates, loss {first_update['loss']:.3f}" in result.stderr.splitlines()
    before = (output / "checkpoint_last.pt").read_bytes()
    # The file that it wrote is the same command: it has been trained.
    repeat = shlex.split((output / "run.yaml").read_text(encoding="utf-8").splitlines()[0])[2:]
    with monkeypatch.context() as there:
        there.chdir(data)
        assert repeat == ["pretrain", "--config", str(output / "run.yaml")] and main(repeat) == 0
    assert printed_command(capsys.readouterr().err) == printed_command(result.stderr) and not result.stdout
    assert load_checkpoint(output / "checkpoint_last.pt")["optimizer_history"][-1]["num_updates"] == 3
    assert UnifiedLM.from_pretrained(output).fill_mask("the <mask> tree", top=1)
    # Again, with another kind of log: it was trained before. fairseq itself would train one more update.
    assert main([*map(str, options), "--fairseq", "--log-interval 1"]) == 0
    assert f"{output}: trained with these settings before; nothing is changed" in capsys.readouterr().err
    assert (output / "checkpoint_last.pt").read_bytes() == before
    message = refused(capsys, *options, "--seed", 2)
    assert f"{output}: was begun with --seed 1, now 2; give another --output, or remove the folder" in message
    # As after an interruption: fairseq goes on from the last checkpoint by itself.
    content = load_checkpoint(output / "checkpoint_last.pt")
    content["optimizer_history"][-1]["num_updates"] = 2
    save(content, output / "checkpoint_last.pt")
    ran = []
    monkeypatch.setattr("unified.cli.commands.pretrain.run_command", ran.append)
    assert main([str(word) for word in options]) == 0
    [words] = ran
    assert words == printed_command(capsys.readouterr().err) and value(words, "--save-dir") == str(output)
