"""Published data sets, a file each: reader, settings and figures of the papers, and files for official programs.

A file format with much to check has a module of its own, named by it: ``squad_json``, ``coqa_json``, ``glue_tables``;
those of several data sets are ``columns``, ``tables`` and ``choices``.
"""
