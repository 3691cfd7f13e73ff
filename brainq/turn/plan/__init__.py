"""From a model's reply to planned calls: is it whole, what may run, when, and what a person must approve."""
