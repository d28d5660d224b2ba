"""Random texts, and `unified prepare` run on them inside the test's process."""

import csv
import io
import json
from pathlib import Path

import numpy as np

from unified.cli import main
from unified.data.token_files import TokenFile

WORDS = "the a red green old new house tree river runs sees makes under over and slowly, quickly. Ünder naïve".split()
WORDS += ["".join(letters) for letters in np.random.default_rng(9).choice(list("aeioustnrl"), size=(300, 6))]

WORDPIECE_SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def random_documents(count, seed=0, paragraphs=4):
    """Lists of paragraphs."""
    rng = np.random.default_rng(seed)
    return [
        [" ".join(rng.choice(WORDS, size=rng.integers(1, 12))) for _ in range(rng.integers(1, paragraphs + 1))]
        for _ in range(count)
    ]


def raw_text(documents):
    return "\n\n".join("\n".join(document) for document in documents) + "\n"


def json_lines(documents):
    return "".join(json.dumps({"text": "\n".join(document)}) + "\n" for document in documents)


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
    return str(path)


def jsonl(path, rows):
    return write(path, "".join(json.dumps(row) + "\n" for row in rows))


def wordpiece_file(folder, words):
    """Path of a `vocab.txt` of whole words, a ready-made tokenizer; the folder is made where it is missing."""
    folder.mkdir(exist_ok=True)
    return write(folder / "vocab.txt", "".join(f"{word}\n" for word in (*WORDPIECE_SPECIAL, *words)))


def run(*arguments):
    """Exit status of `unified prepare` on one worker, with the small tokenizer of characters."""
    arguments = [str(argument) for argument in arguments]
    if "--tokenizer" not in arguments:
        arguments += ["--tokenizer", "char", "--character-coverage", "1"]
    if "--workers" not in arguments:
        arguments += ["--workers", "1"]
    return main(["prepare", *arguments])


def tree(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


def items(prefix):
    file = TokenFile(prefix)
    return [file[i].tolist() for i in range(len(file))]


def expected_items(documents, tokenizer, vocabulary):
    result = []
    for i, document in enumerate(documents):
        if i:
            result.append([2])
        result.extend([*vocabulary.encode(tokenizer.encode(line)).tolist(), 2] for line in document)
    return result


def parquet(path, rows):
    import pyarrow  # here: importing it starts threads
    from pyarrow import parquet

    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    return str(path)


def csv_text(rows, delimiter=","):
    """Rows, which are dictionaries with equal keys, as the text of a table with a header."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()


def random_lines(count, seed):
    """Lines of few words, rich in what the rules of cleaning look for."""
    rng = np.random.default_rng(seed)
    parts = 'a The x. end. end." (end.) end?! Dr. U.S. e.g. J. No. 5 vs. … … "So (so so, http://a.b/c. www.x.org) '
    parts += "/usr/lib/x /a/ and/or ~/x C:\\d\\e <br> <b> </b> &amp; &lt;br&gt; [1] [[2]] () [ ] ---- ====="
    parts += " a----b ...... \u200b"
    parts = [*parts.split(" "), "\u2003", "\t", '<a href="x y">', "<!-- no -->", "(http://a.b)", "([1])"]
    return [" ".join(rng.choice(parts, size=rng.integers(1, 14))) + " z" for _ in range(count)]
