"""Text that crosses a boundary: whole characters, cut to a length, and its length in tokens."""
