"""Brains: what an agent's turns share, how it is checked and loaded, and which one a turn is for."""
