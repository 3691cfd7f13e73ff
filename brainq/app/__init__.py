"""The assembly of a running brainq: wiring, access tokens and the servers of a development machine."""
