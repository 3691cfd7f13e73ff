"""Recall of tool selection: of the tools that recorded models called, how many would they have been shown?

Run it with `python -m lab.recall --help`; docs/guides/tool-selection.md says how to read it.
"""
