"""The native routes, `/v1/...`, and their bodies."""
