"""YAML that users give, such as the options of a run: whatever is wrong with it is said in one line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unified.errors import UnifiedError

#: Bytes of a file of options; larger ones take long to read.
_LARGEST = 1 << 20


def read_yaml_object(path: str | Path) -> dict[Any, Any]:
    """Names and values of a YAML file; none where it is empty.

    Raises:
        UnifiedError: it cannot be read, or holds anything else.
    """
    import yaml  # here, as few commands read such a file

    try:
        if Path(path).stat().st_size > _LARGEST:
            raise UnifiedError(f"{path}: longer than {_LARGEST >> 20} MiB; options take a few lines")
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except UnifiedError:
        raise
    except UnicodeDecodeError as error:
        raise UnifiedError(f"{path}: not UTF-8 at byte {error.start}") from None
    except yaml.MarkedYAMLError as error:
        raise UnifiedError(f"{path}, line {error.problem_mark.line + 1}: not YAML: {error.problem}") from None
    except RecursionError:
        raise UnifiedError(f"{path}: not YAML: nested too deeply") from None
    except (yaml.YAMLError, ValueError) as error:  # a date or a number that is none
        raise UnifiedError(f"{path}: not YAML: {error}") from None
    except OSError as error:
        raise UnifiedError(f"{path}: cannot be read ({error.strerror})") from None
    if content is not None and not isinstance(content, dict):
        raise UnifiedError(f"{path}: must hold a line 'name: value' for each option")
    return content or {}
