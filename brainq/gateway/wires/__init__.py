"""Wires: protocols of others, over which turns are submitted, followed and answered."""
