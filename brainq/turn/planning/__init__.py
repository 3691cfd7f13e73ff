"""From a model's reply to planned calls: is it whole, what may run and when; and the diff of what calls changed."""
