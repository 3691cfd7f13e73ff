"""A brain of a vendor's model. The SDK is loaded, and no service is called."""

from __future__ import annotations

from brainq import Brain

brain = Brain("vendor", model="openai:gpt-4.1")
