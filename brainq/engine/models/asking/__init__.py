"""Calls of models, whichever vendor answers: their time, retries, permits, bill and fallbacks."""
