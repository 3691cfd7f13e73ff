"""Brains: what the turns of an agent share, how a brain is checked and loaded, and which brain a turn has."""
