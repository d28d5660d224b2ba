"""Tables, JSON lines and binary files are refused where raw text is read; prose is not."""

from __future__ import annotations

import gzip
import json
import lzma
import os
from pathlib import Path

import pytest

from tests.support.corpora import run, write
from unified.errors import UnifiedError
from unified.files.raw_text import RawTextReader, require_text
from unified.inference.sentences import FileSentences
from unified.tasks.augmentation.passages import sample_passages
from unified.tasks.metrics.outputs import read_lines

COMMAS = "text,label\n" + "".join(f'"A film, number {i}, of which one speaks.",{i % 2}\n' for i in range(20))
TABS = "".join(f"{i}\tA sentence, with a comma.\tpositive\n" for i in range(10))
PROSE = """Then came Anna, who had said that she would not.
"Why," he asked, "have you come, then?"
She had the answer, and it was 1,000.

To be, or not to be; that is the question.
"""

TABLES = {
    "commas": COMMAS,
    "a header and two lines": "id,text,label\n1,good,yes\n2,bad,no\n",
    "quoted line ends": "text,label\n" + '"one\ntwo, three",yes\n' * 5,
    "commas without a header": "".join(f"{i},{i + 1},{i + 2}\n" for i in range(10)),
    "blanks behind the commas": "name, year, place\n" + "Anna, 1901, Riga\n" * 9,
    "semicolons": "text;label\ngut;ja\nschlecht;nein\n",
    "tabs": TABS,
    "tabs with a header": "sentence\tlabel\nIt is good .\t1\nIt is bad .\t0\n",
    "line ends of Windows": COMMAS.replace("\n", "\r\n"),
    "a byte-order mark": "\ufeff" + COMMAS,
    "longer than what is looked at": COMMAS + COMMAS.partition("\n")[2] * 500,
}
NO_TABLES = {
    "prose": PROSE,
    "a list": "ACP,\nAL,\nAMF,\nECA,\nFAO,\nIBRD,\nICC (signatory),\nIDA,\nIFC,\nILO,\nIMF,\nIMO,\n",
    "one comma a line": "Yes, he said.\nNo, she said.\nWell, they said.\nSo, it was said.\n" * 20,
    "indented by tabs": "\tOne day he came.\n\tOne day he went.\n\n\tNobody saw him.\n" * 5,
    "thousands": "They sold 1,000 of them.\nWe bought 2,000 of them.\nHe saw 3,000 of them.\n",
    "tokens": "the old house , which is red .\nthe new house , which is green .\n" * 20,
    "a brace": '{"text": "a"}\nand so on\n',
}


@pytest.mark.parametrize("name", TABLES)
def test_tables_are_known_by_their_content(tmp_path, capsys, name):
    path = write(tmp_path / "a.txt", TABLES[name])
    assert run(path, "--output", tmp_path / "data") == 2
    message = capsys.readouterr().err
    assert message.startswith(f"unified prepare: error: {path}: a table, not raw text: its first ")
    assert "write the texts one a line, or save the table as .csv" in message and not (tmp_path / "data").exists()


@pytest.mark.parametrize("name", NO_TABLES)
def test_prose_is_none(name):
    require_text("a.txt", NO_TABLES[name].encode())


TABLE_ENDINGS = "csv TSV tab csv.gz parquet pq psv xls xlsx ods feather arrow orc"
OTHER_ENDINGS = "pdf doc docx odt epub zip tar tgz bz2 7z npy npz db"


@pytest.mark.parametrize("ending", OTHER_ENDINGS.split())
def test_what_is_neither_text_nor_table_is_known_by_its_name(tmp_path, ending):
    with pytest.raises(UnifiedError, match=rf"a.{ending}: not raw text by its name \(.{ending}\)"):
        read_lines(write(tmp_path / f"a.{ending}", PROSE))


@pytest.mark.parametrize("name", [f"a.{ending}" for ending in TABLE_ENDINGS.split()])
def test_tables_are_known_by_their_names(tmp_path, name):
    content = gzip.compress(PROSE.encode()) if name.endswith("gz") else PROSE
    path = write(tmp_path / name, content)
    with pytest.raises(UnifiedError, match="a table by its name"):
        read_lines(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (gzip.compress(b"text", mtime=0), "compressed by gzip, which a name with .gz says"),
        (lzma.compress(b"text"), "compressed by xz, which a name with .xz says"),
        (b"PK\x03\x04 and so on", "a zip archive, such as an .xlsx"),
        (b"PAR1 and so on", "a Parquet file"),
        ("text".encode("utf-16-le"), "a byte is zero"),
        (b'{"text": "a"}\n{"text": "b"}\n', "JSON lines, which a name with .jsonl says"),
    ],
)
def test_what_is_no_text_is_named(tmp_path, content, message):
    with pytest.raises(UnifiedError, match=message):
        list(RawTextReader(write(tmp_path / "a.txt", content)).chunks())


def test_wherever_raw_text_is_read(tmp_path, capsys):
    """Either side of pairs, validation text, passages of `unified augment`, sources of `unified generate`."""
    table, text = write(tmp_path / "table.txt", TABS), write(tmp_path / "text.txt", "Some prose.\n" * 10)
    for arguments in ([table, "--target", text], [text, "--target", table], [text, "--valid", table]):
        assert run(*arguments, "--output", tmp_path / "data") == 2
        assert f"{table}: a table, not raw text" in capsys.readouterr().err
        assert not (tmp_path / "data").exists()
    for read in (lambda: FileSentences(Path(table)), lambda: sample_passages([table], "text", None, (1, 9), 1)):
        with pytest.raises(UnifiedError, match="a table, not raw text"):
            read()
    write(tmp_path / "text.txt.gz", gzip.compress(b"Some prose.\n\nMore.\n"))
    assert FileSentences(tmp_path / "text.txt.gz").lines == ["Some prose.", "", "More."]


@pytest.mark.skipif("UNIFIED_DATA" not in os.environ, reason="needs the folder UNIFIED_DATA")
def test_real_prose_is_none():
    """Documents, and pieces of ten lines, of an encyclopedia and of books."""
    folder = Path(os.environ["UNIFIED_DATA"])
    for name in ("pretrain_wiki", "pretrain_books"):
        with lzma.open(folder / name / "valid.jsonl.xz", "rt", encoding="utf-8") as stream:
            for _, line in zip(range(300), stream, strict=False):
                lines = [part for part in json.loads(line)["text"].split("\n") if part.strip()]
                for start in range(0, len(lines), 10):
                    require_text(name, "\n".join(lines[start : start + 10]).encode())
                require_text(name, "\n".join(lines).encode())
    with lzma.open(folder / "wikitext2" / "valid.txt.xz") as stream:
        require_text("wikitext2", stream.read())
