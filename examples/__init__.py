"""Examples that run: `python -m examples.vault.demo`, and a tool of your own in `own_tool.py`."""
