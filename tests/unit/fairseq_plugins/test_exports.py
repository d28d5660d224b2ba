"""The option that leaves out the files for transformers."""

from fairseq_plugins.exports import ExportConfig


def test_models_are_exported_unless_that_is_said():
    assert ExportConfig().no_export is False and ExportConfig(no_export=True).no_export is True
