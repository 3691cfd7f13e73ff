"""The gateway: the client's verbs over HTTP, for programs in any language. `brainq serve` runs it."""
