"""Text as it crosses a line: whole characters, cut to a length, and its length in tokens. One place for each."""
