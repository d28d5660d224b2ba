"""Values that make no sense, of options and of arguments in Python: one line each that names what was given."""

import shlex

import pytest
import torch

from tests.support.augment_models import asking, spans
from tests.support.task_folders import language_model
from unified import UnifiedLM, load
from unified.cli import main
from unified.errors import UnifiedError


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """``writes`` and ``answers``: models; ``start``: a model to fine-tune; a text, items and a prepared folder."""
    folder = tmp_path_factory.mktemp("values")
    asking(folder / "writes", 1, max_positions=256)
    spans(folder / "answers", 1)
    language_model(folder / "start")
    (folder / "text").write_text("the fox runs\n\nthe dog sleeps\n" * 20)
    rows = "".join(f"w{i % 30} w{i % 7},{'ab'[i % 2]}\n" for i in range(40))
    (folder / "items.csv").write_text("text,label\n" + rows)
    assert main(shlex.split(f"prepare {folder}/text --output {folder}/data --tokenizer char --workers 1 -q")) == 0
    return folder


COMMANDS = {
    "generate": "generate --model {}/writes --input {}/text --output {}/generated",
    "predict": """predict span --model {}/answers '{{"question": "who", "context": "ada berg"}}'""",
    "finetune": "finetune classification --data {}/items.csv --init {}/start --output {}/run --dry-run",
    "prepare": "prepare {}/text --output {}/other",
    "pretrain": "pretrain {}/data --model small --objectives bidirectional --output {}/pretrained --dry-run",
    "augment": "augment {}/text --output {}/out --answer-model {}/answers --question-model {}/writes "
    "--reader-model {}/answers",
}


@pytest.mark.parametrize(
    ("command", "options", "says"),
    [
        ("generate", "--device gpu", "--device gpu: PyTorch cannot compute there; use cpu, cuda or cuda:NUMBER"),
        ("predict", "--device cuda:77", "--device cuda:77: "),
        ("augment", "--device tpu:x", "--device tpu:x: PyTorch cannot compute there"),
        ("generate", "--beam 0", "--beam must be at least 1, got 0"),
        ("generate", "--max-length -1", "--max-length must be at least 1, got -1"),
        ("generate", "--threads 0", "argument --threads: must be an integer from 1 to 4096, got '0'"),
        ("predict", "--threads -1", "argument --threads: must be an integer from 0 to 4096, got '-1'"),
        ("augment", "--unanswerable 1.5", "argument --unanswerable: must be a number from 0 to 1, got '1.5'"),
        ("augment", "--seed -1", "argument --seed: must be an integer from 0 to 2147483647, got '-1'"),
        ("prepare", "--seed -1", "argument --seed: must be an integer of at least 0, got '-1'"),
        ("finetune", "--seed -1", "argument --seed: must be an integer from 0 to 2147483647, got '-1'"),
        (
            "finetune",
            "--auxiliary-masking -1",
            "argument --auxiliary-masking: must be a number of at least 0, got '-1'",
        ),
        ("finetune", "--auxiliary-masking inf", "argument --auxiliary-masking: must be a number of at least 0"),
        ("finetune", "--head 'classification(dropout=7)'", "dropout must be at least 0 and below 1, got 7"),
        (
            "finetune",
            "--head 'classification(dropuot=0)'",
            "no setting 'dropuot' (did you mean 'dropout'?); its settings",
        ),
        ("finetune", '--fairseq "\'"', '--fairseq "\'": a quotation mark is not closed'),
        ("pretrain", '--fairseq "\'"', '--fairseq "\'": a quotation mark is not closed'),
        ("pretrain", "--objectives bidirectionl", "no such objective (did you mean 'bidirectional'?)"),
        ("prepare", "--clean url", "--clean: no rule 'url' (did you mean 'urls'?); the rules are urls, "),
        ("prepare", "--annotate noun_phrase --spacy x", "got 'noun_phrase' (did you mean 'noun_phrases'?)"),
        ("prepare", "--tokenizer unigrm", "anna (did you mean 'unigram'?)"),
        ("finetune", "--mask bidirectionl", "invalid choice: 'bidirectionl' (did you mean 'bidirectional'?)"),
    ],
)
def test_options_are_refused_by_name(folder, capsys, command, options, says):
    capsys.readouterr()
    try:
        status = main(shlex.split(COMMANDS[command].replace("{}", str(folder)).replace("{{", "{").replace("}}", "}")) +
                      shlex.split(options))  # fmt: skip
    except SystemExit as left:  # by the parser
        status = left.code
    out, err = capsys.readouterr()
    assert status == 2 and says in err.splitlines()[-1] and "Traceback" not in err
    assert not any((folder / name).exists() for name in ("generated", "other", "out"))


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda lm: lm.generate(["a"], max_length=-1), "max_length must be at least 1, got -1"),
        (lambda lm: lm.generate(["a"], beam=0), "beam must be at least 1, got 0"),
        (lambda lm: lm.generate({"a": "b"}), "texts: expected a list of texts, got dict {'a': 'b'}"),
        (lambda lm: lm.generate(torch.tensor([1, 2])), r"expected a list of texts, got Tensor tensor\(1\)"),
        (lambda lm: lm.generate(["a"], prompt="yes"), "prompt must be True, False or None, got 'yes'"),
        (lambda lm: lm.fill_mask([]), r"text: expected one text, got list \[\]"),
        (lambda lm: lm.embed("one string"), "texts: expected a list of texts, got one text; put it in a list"),
        (lambda lm: lm.embed(torch.tensor([1])), r"texts\[0\]: expected one text, got Tensor tensor\(1\)"),
        (lambda lm: lm.decode("abc"), "ids: expected a list of integers, got the text 'abc'"),
        (lambda lm: lm.decode([1.5]), r"ids: expected a list of integers, got \[1.5\]"),
        (lambda lm: lm.pieces(3), "ids: expected a list of integers, got 3"),
        (lambda lm: lm.pieces([-1]), "ids must be from 0 to [0-9]+, got -1"),
        (lambda lm: lm.decode([-1]), "ids must be from 0 to 171, got -1"),
        (lambda lm: lm.to("gpu"), "device gpu: PyTorch cannot compute there"),
        (lambda lm: lm.save_pretrained(None), "folder: expected the path of a file or folder, got NoneType None"),
        (lambda lm: load(None), r"paths\[0\]: expected the path of a file or folder, got NoneType None"),
        (lambda lm: load(3), r"paths\[0\]: expected the path of a file or folder, got int 3"),
        (lambda lm: load(["a"]), r"paths\[0\]: expected the path of a file or folder, got list \['a'\]"),
        (lambda lm: load(""), r"paths\[0\]: expected the path of a file or folder, got str ''"),
        (lambda lm: UnifiedLM.from_pretrained(None), "path: expected the path of a file or folder, got NoneType None"),
    ],
)
def test_arguments_are_refused_by_name(folder, ask, says):
    with pytest.raises(UnifiedError, match=says):
        ask(load(folder / "writes"))
