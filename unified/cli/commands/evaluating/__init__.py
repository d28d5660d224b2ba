"""Types of evaluation of `unified evaluate`, one module each.

Each has ``NAME``, ``HELP`` and ``DESCRIPTION``, ``add_arguments(parser)`` and ``run(args)``.
"""
