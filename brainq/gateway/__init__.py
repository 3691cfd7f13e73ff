"""The gateway: what a client does, over HTTP, for programs in any language. `brainq serve` runs it."""
