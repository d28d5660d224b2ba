"""Archives whose records would take more memory than the file has bytes are refused before they are read."""

from __future__ import annotations

import zipfile

import pytest
import torch

from tests.support.refusals import refused
from unified.errors import UnifiedError
from unified.files.archives import check_stored


def test_a_checkpoint_of_torch_passes(tmp_path):
    torch.save({"weights": torch.arange(1000.0)}, tmp_path / "checkpoint.pt")
    check_stored(tmp_path / "checkpoint.pt", "a checkpoint")


def test_compressed_records_are_refused(tmp_path):
    path = tmp_path / "checkpoint.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("data", bytes(1_000_000))
    with pytest.raises(UnifiedError, match="not a checkpoint: the record 'data' inside it is compressed"):
        check_stored(path, "a checkpoint")


def test_records_that_share_their_bytes_are_refused(tmp_path):
    """A second entry of the list of records names the bytes of the first."""
    path = tmp_path / "checkpoint.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data", bytes(1000))
        archive.filelist.append(archive.getinfo("data"))
    with pytest.raises(UnifiedError, match="its records say that they are larger than the file"):
        check_stored(path, "a checkpoint")


def test_damage_is_found(tmp_path):
    path = tmp_path / "checkpoint.pt"
    torch.save({"weights": torch.arange(1000.0)}, path)
    content = bytearray(path.read_bytes())
    content[content.index(torch.arange(1000.0).numpy().tobytes()[:400]) + 100] ^= 1
    path.write_bytes(content)
    with pytest.raises(UnifiedError, match="damaged, the checksum of '.*data/0' inside it does not fit"):
        check_stored(path, "a checkpoint")


@pytest.mark.parametrize("beyond", [0, 1])
def test_records_may_say_that_they_are_as_large_as_the_file(tmp_path, beyond):
    path = tmp_path / "checkpoint.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data", bytes(1000))
    size = path.stat().st_size
    with zipfile.ZipFile(path, "a") as archive:
        archive.getinfo("data").file_size = size + beyond
        archive.comment = b""  # so that the list of records is written again
    assert path.stat().st_size == size
    if beyond:
        says = f"{path}: not a checkpoint: its records say that they are larger than the file"
        assert refused(check_stored, path, "a checkpoint") == says
    else:
        check_stored(path, "a checkpoint")


def test_the_reason_of_a_refusal_is_what_zipfile_says(tmp_path):
    path = tmp_path / "checkpoint.pt"
    path.write_bytes(b"weights")
    says = f"{path}: not a checkpoint, or a truncated or damaged one (File is not a zip file)"
    assert refused(check_stored, path, "a checkpoint") == says


def test_a_record_that_ends_behind_the_file_is_refused_though_zipfile_gives_no_reason(tmp_path):
    path = tmp_path / "checkpoint.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data", bytes(1000))
    size = path.stat().st_size
    with zipfile.ZipFile(path, "a") as archive:
        archive.getinfo("data").file_size = archive.getinfo("data").compress_size = size
        archive.comment = b""
    says = f"{path}: not a checkpoint, or a truncated or damaged one (EOFError)"
    assert refused(check_stored, path, "a checkpoint") == says
