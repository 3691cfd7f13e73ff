"""The recall of tool selection: how many of the tools that recorded models called would have been shown to them?

Run it with `python -m lab.recall --help`. docs/guides/tool-selection.md explains the output.
"""
