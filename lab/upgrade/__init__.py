"""A test of a rolling upgrade under load, from another revision to this checkout, for lost turns and doubled writes."""
