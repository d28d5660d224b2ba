"""What `make lint` finds in the measurements: calls of the library that do not fit it any more."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]


def test_an_argument_that_a_function_has_not_is_found(tmp_path):
    lint = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\nlint:")[2].partition("\n\n")[0]
    (settings,) = (word for word in lint.split() if word.endswith("mypy.ini"))
    (tmp_path / "packing.py").write_text("def arranged(): ...\n\n\ndef main():\n    arranged(packed=True)\n")
    command = [sys.executable, "-m", "mypy", "--config-file", ROOT / settings, "packing.py"]
    found = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert found.returncode == 1 and 'packing.py:5: error: Unexpected keyword argument "packed"' in found.stdout
    assert "files = benchmarks, gpu\n" in (ROOT / settings).read_text(encoding="utf-8")
