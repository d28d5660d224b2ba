"""The quickstart's corpus: filters on typed examples, and splits that share no sentence."""

import inspect
import json
import subprocess
import sys
from pathlib import Path

import baseline
import corpus
import prose
import pytest

# ------------------------------------------------------------------- prose


@pytest.mark.parametrize(
    "sentence",
    [
        "Return the number of rows.",
        "If the axis is None, the array is flattened (a copy is made).",
        "Is the matrix positive-definite?",
        'It must be "mean" or "sum".',
        "Uses Newton's method, i.e. a quadratic model of the function.",
        "The FFT of a 1-D array is computed with SciPy.",
        "Returns True if all of the 12 elements are NaN; otherwise False.",
        "It is a copy (not a view).",
    ],
)
def test_prose_is_kept(sentence):
    assert prose.is_prose(sentence)


@pytest.mark.parametrize(
    ("sentence", "why"),
    [
        ("Return it now.", "three words"),
        ("return the number of rows.", "no capital"),
        ("Return the number of rows", "no full stop"),
        ("Return the value of n_samples here.", "identifier"),
        ("Return a numpy.ndarray of the values.", "dotted name"),
        ("Return a DataFrame of the values.", "camel case"),
        ("Set it to 0.5 if it is missing.", "decimal"),
        ("Call foo(x) to get the value.", "call"),
        ("See https://example.org for the details.", "address"),
        ("The café of the village is closed.", "not ASCII"),
        ("The value of x**2 is the result.", "formula"),
        ("Linear Algebra Routines of Interest Here Today.", "title"),
        ("Compute values within given bounds quickly.", "no function word"),
        ("The array (which is flattened is returned.", "open bracket"),
        ('The mode is "full or valid here.', "open quote"),
        ("The first area. separator between the columns.", "two sentences"),
        ("The " + "very " * 60 + "long sentence.", "too long"),
    ],
)
def test_what_is_not_prose_is_left_out(sentence, why):
    assert not prose.is_prose(sentence), why


DOCUMENTED = """
    norm(x, ord=None) -> float

    It is *norm* number ``one`` of the list [1]_. It is computed as in [1]_. The result is
    a number (see :func:`numpy.linalg.norm`); use *only* if needed.
    It is slow, e.g. for large input. Is it exact?

    Parameters
    ----------
    x : array_like
        The input array. It is not changed.
    ord (int): The order of the norm.
    * Note that this is an item of a list.

    .. versionadded:: 1.2
        This was added by someone in a version.

    .. note:: The norm of nothing is zero.

    Use it like this::

        This is the code of an example.
        x = norm(y)

    Then look at the result of it.

    ```
    Here is some more of the code.
    ```

    >>> norm([3, 4])
    This is the output of a doctest.

    References
    ----------
    .. [1] This is the title of a book.
    A Book about the Norms of Things.
"""


def test_sentences_of_a_documentation_string():
    assert prose.sentences(inspect.cleandoc(DOCUMENTED)) == [
        "It is norm number one of the list.",
        "It is slow, e.g. for large input.",
        "It is not changed.",
        "The order of the norm.",
        "Note that this is an item of a list.",
        "The norm of nothing is zero.",
        "Then look at the result of it.",
    ]


def test_sentences_are_cut_at_full_stops_and_not_at_abbreviations():
    text = "It works, cf. Smith et al. See Fig. 3 below. Really? Yes! (It does.) J. Doe wrote it."
    assert prose.split_sentences(text) == [
        "It works, cf. Smith et al. See Fig. 3 below.",
        "Really?",
        "Yes!",
        "(It does.)",
        "J. Doe wrote it.",
    ]


def test_markup_is_taken_away():
    text = "See :class:`~torch.Tensor`, ``None``, `this`_, `~a.b`, **bold** and *thin* [2]_   text."
    assert prose.plain(text) == "See torch.Tensor, None, this, a.b, bold and thin text."


def test_the_source_of_a_pair():
    sentence = "If Newton's \"fast\" 2-D method fails (rarely), stop: it won't help; why?"
    assert prose.without_marks(sentence) == "if newtons fast 2 d method fails rarely stop it wont help why"


# ---------------------------------------------------------- documentation


SOURCE = b'''"""Module text."""
class Shape:
    """Class text."""
    def area(self):
        """Method text."""
        def inner():
            """Inner text."""
async def later(): "Short text in single quotes."
def silent(): return """not documentation"""
add_docstr(torch.abs, """abs(input) -> Tensor

The absolute value {of}.""".format(of="x"))
add_newdoc("numpy.core", "sign", """The sign of the argument is returned.""")
'''


def test_documentation_strings_and_their_names():
    found = {one.name: one.text for one in corpus.documentation("torch.m", SOURCE)}
    assert found == {
        "torch.m": "Module text.",
        "torch.m.Shape": "Class text.",
        "torch.m.Shape.area": "Method text.",
        "torch.m.Shape.area.inner": "Inner text.",
        "torch.m.later": "Short text in single quotes.",
        "torch.abs": "abs(input) -> Tensor\n\nThe absolute value {of}.",
        "torch.m.numpy.core.sign": "The sign of the argument is returned.",
    }


def test_a_module_of_another_python_is_passed_over(tmp_path):
    path = tmp_path / "old.py"
    path.write_bytes(b'"""Text."""\nprint "hello"\n')
    assert corpus.read_module(("old", path)) is None
    path.write_bytes(b'"""\xff\xfe"""\n')
    assert corpus.read_module(("old", path)) is None


BODY = "The body of the text has more than ten words in it, of course."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"Do a thing.\n\n{BODY}", (f"m.f: {BODY}", "Do a thing.")),
        (f"f(x) -> y\n\nDo a thing.\n\n{BODY}", (f"m.f: {BODY}", "Do a thing.")),
        (f"Do a thing. Then more.\n\n{BODY}", (f"m.f: Then more. {BODY}", "Do a thing.")),
        (f"Do a thing.\n\n{BODY}\n\n>>> f(1)\n2", (f"m.f: {BODY}", "Do a thing.")),
        ("Do a thing.\n\nShort body.", None),
        (f"do a thing.\n\n{BODY}", None),
        (f"Do a thing\n\n{BODY}", None),
        ("Do a thing.", None),
        ("", None),
    ],
)
def test_summary_pairs(text, expected):
    assert corpus.summary_pair(corpus.Documentation("m.f", text)) == expected


# ------------------------------------------------------------------ splits


SHARED = "This sentence stands in every module of the package, which is a pity."
NESTED = "The sentence that is said again somewhere else is left out"


def module_text(number: int) -> str:
    """Three documented functions; two sentences occur nowhere else, one is in every module, one inside of another."""
    word = "".join(chr(97 + (number // 26**i) % 26) for i in range(3))
    return f'''"""Module {word}.

The module called {word} holds functions for the treatment of numbers.
{SHARED}
"""
def one():
    """Return one {word}.

    Nothing in the world is quite like the function {word}, as we all know.
    """
def two():
    """{NESTED if number % 2 else "Note well: " + NESTED.lower()}.
    """
'''


@pytest.fixture(scope="module")
def package(tmp_path_factory) -> corpus.Package:
    folder = tmp_path_factory.mktemp("package")
    for i in range(300):
        inner = folder / ("sub" if i % 3 else "")
        inner.mkdir(exist_ok=True)
        (inner / f"module_{i:03d}.py").write_text(module_text(i))
    (folder / "tests").mkdir()
    (folder / "tests" / "test_it.py").write_text('"""This is the text of a test and not wanted."""')
    return corpus.Package("package", "1.0", folder)


@pytest.fixture(scope="module")
def files(package) -> dict[str, list[str]]:
    passages = {split: [] for split in corpus.SPLITS}
    for split, found in corpus.read_packages([package], processes=1):
        passages[split] += found
    return corpus.build(passages)


def test_tests_of_packages_are_not_read(package):
    names = [name for name, _ in corpus.modules(package)]
    assert len(names) == 300 and names == sorted(names)
    assert "package.sub.module_001" in names and "package.module_003" in names


def test_every_split_has_pairs(files):
    for split in corpus.SPLITS:
        assert files[f"restore/{split}.target"], split
        assert files[f"summarize/{split}.jsonl"], split
    assert set(files) == {
        *(f"documents/{split}.txt" for split in ("train", "valid")),
        *(f"restore/{split}.{side}" for split in corpus.SPLITS for side in ("source", "target")),
        *(f"summarize/{split}.jsonl" for split in corpus.SPLITS),
    }


def test_no_held_out_sentence_occurs_in_a_split_before_it(files):
    """Not as a line, and not within one, whatever the capitals and marks."""
    before = [name for name in files if "/train" in name and not name.startswith("summarize")]
    for split in ("valid", "test"):
        text = "\n".join(f" {prose.without_marks(line)} " for name in before for line in files[name])
        for sentence in files[f"restore/{split}.target"]:
            assert f" {prose.without_marks(sentence)} " not in text, (split, sentence)
        before += [f"restore/{split}.target", f"documents/{split}.txt"]
    assert sum(SHARED in line for line in files["documents/train.txt"]) == 1
    assert not any(SHARED in line for line in files["documents/valid.txt"] + files["restore/test.target"])


def test_no_summary_occurs_twice(files):
    targets, bodies = {}, {}
    for split in corpus.SPLITS:
        for line in files[f"summarize/{split}.jsonl"]:
            pair = json.loads(line)
            assert targets.setdefault(pair["target"], split) == split
            assert bodies.setdefault(pair["source"].partition(": ")[2], split) == split


def test_pairs_belong_together(files):
    for split in corpus.SPLITS:
        sources, targets = files[f"restore/{split}.source"], files[f"restore/{split}.target"]
        assert sources == [prose.without_marks(target) for target in targets]
        assert len(set(sources)) == len(sources)
        assert all(
            prose.is_prose(target) and (split == "train" or prose.is_restoring_test(target)) for target in targets
        )


def test_documents_are_parted_by_one_empty_line(files):
    lines = files["documents/train.txt"]
    assert lines[0] and lines[-1]
    assert not any(a == b == "" for a, b in zip(lines, lines[1:], strict=False))
    assert 0 < lines.count("") < len(lines) / 2


def test_held_out_splits_are_cut_evenly(package):
    passages = {split: [] for split in corpus.SPLITS}
    for split, found in corpus.read_packages([package], processes=1):
        passages[split] += found
    all_targets, few = corpus.build(passages)["restore/test.target"], corpus.build(passages, held_out=3)
    assert few["restore/test.target"] == [all_targets[i * len(all_targets) // 3] for i in range(3)]
    assert len(few["restore/train.target"]) > 100 and len(all_targets) > 6


def test_contained_finds_runs_of_whole_words():
    texts = ["a b c d e f", "x y z"]
    keys = ["b c d e", "a b c d e f", "c d e g", "b c d", "x y z w", "bb c d e"]
    assert corpus.contained(keys, texts) == {"b c d e", "a b c d e f"}


def test_a_module_is_dealt_by_its_name_alone():
    names = [f"package.module_{i}" for i in range(20000)]
    shares = {split: sum(corpus.split_of(n) == split for n in names) / len(names) for split in corpus.SPLITS}
    assert shares["valid"] == pytest.approx(0.04, abs=0.01) and shares["test"] == pytest.approx(0.06, abs=0.01)
    assert corpus.split_of("numpy.linalg._linalg") == corpus.split_of("numpy.linalg._linalg")


def test_the_corpus_appears_whole_or_not_at_all(tmp_path, files):
    corpus.write(files, tmp_path / "out")
    written = {str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.*")}
    assert written == set(files)
    lines = (tmp_path / "out" / "restore" / "train.target").read_text(encoding="utf-8").splitlines()
    assert lines == files["restore/train.target"]
    with pytest.raises(SystemExit, match="exists already"):
        corpus.main(["--output", str(tmp_path / "out")])


def test_the_packages_of_this_install_are_found_without_importing_them():
    program = "import sys, corpus; print([p.name for p in corpus.find_packages()]); print('scipy' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=Path(corpus.__file__).parent, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found, imported = done.stdout.splitlines()
    assert "'python', 'torch', 'numpy'" in found and imported == "False"


# --------------------------------------------------------------- baselines


def test_baselines(tmp_path):
    assert baseline.capital_and_full_stop("return the rows") == "Return the rows."
    assert baseline.lead_sentence("m.f: It is: e.g. a thing. And more.") == "It is: e.g. a thing."
    (tmp_path / "s").write_text("a b\nc\n")
    baseline.main(["rule", str(tmp_path / "s"), str(tmp_path / "o")])
    assert (tmp_path / "o").read_text() == "A b.\nC.\n"
    (tmp_path / "j").write_text(json.dumps({"source": "n: One. Two.", "target": "x"}) + "\n")
    baseline.main(["lead", str(tmp_path / "j"), str(tmp_path / "o")])
    assert (tmp_path / "o").read_text() == "One.\n"
