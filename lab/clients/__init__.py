"""Official clients against a real gateway: which of their features work, as a page made of what was seen."""
