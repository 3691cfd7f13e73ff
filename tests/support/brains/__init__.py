"""Brains for tests that run whole turns."""
