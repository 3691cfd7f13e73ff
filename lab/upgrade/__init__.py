"""A rolling upgrade under load, from another revision to this checkout: what is lost, what is done twice."""
