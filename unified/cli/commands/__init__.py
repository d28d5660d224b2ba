"""The subcommands of ``unified``, one module each."""
