"""The client for programs without Redis, SQL and the brain: the verbs of Client over the gateway's HTTP API."""
