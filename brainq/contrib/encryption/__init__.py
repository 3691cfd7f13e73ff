"""Encryption of content in SQL under the operator's keys. Found through the entry points `brainq.encryption`."""
