"""A data set's file without items is refused, and what it lacks is called by its name."""

import pytest

from unified.errors import UnifiedError
from unified.tasks.datasets.codah import read_codah
from unified.tasks.datasets.conll2003 import read_conll2003
from unified.tasks.datasets.dream import read_dream
from unified.tasks.datasets.semeval2010 import read_semeval2010
from unified.tasks.datasets.swag import read_swag
from unified.tasks.datasets.tacred import read_tacred
from unified.tasks.datasets.wnut17 import read_wnut17


@pytest.mark.parametrize(
    ("read", "content", "lacks"),
    [
        (read_codah, "", "question"),
        (read_dream, "[]", "question"),
        (read_swag, "sent1,sent2,ending0,ending1,ending2,ending3,label\n", "question"),
        (read_semeval2010, "", "sentence"),
        (read_tacred, "[]", "sentence"),
        (read_conll2003, "-DOCSTART- -X- O O\n\n", "sentence"),
        (read_wnut17, "", "sentence"),
    ],
)
def test_a_file_without_items_is_refused(tmp_path, read, content, lacks):
    path = tmp_path / ("file.csv" if read is read_swag else "file.json")
    path.write_text(content)
    with pytest.raises(UnifiedError, match=f"^{path}: holds no {lacks}$"):
        read(path)
