"""The tokenizer of a data folder in the form of fairseq's --bpe."""

from fairseq_plugins.tokenizer import FolderTokenizer
from tests.support.task_folders import tokenizer
from unified.tokenization.wordpiece import WordPieceTokenizer


def test_a_folder_has_its_tokenizer_and_a_folder_of_plain_fairseq_none(tmp_path):
    assert FolderTokenizer.of(tmp_path) is None
    tokenizer("##x").save(tmp_path)
    own = FolderTokenizer.of(tmp_path)
    assert isinstance(own, FolderTokenizer) and isinstance(own.tokenizer, WordPieceTokenizer)
    assert own.encode("w1  w22x\tw3") == "w1 w22 ##x w3"
    assert own.decode("w1 w22 ##x w3") == "w1 w22x w3" and own.encode("") == own.decode("") == ""
