"""Runs official clients against a real gateway, and writes a page that says which of their features work."""
