"""A brain of a vendor's model: nothing is asked here, but its SDK is loaded."""

from __future__ import annotations

from brainq import Brain

brain = Brain("vendor", model="openai:gpt-4.1")
