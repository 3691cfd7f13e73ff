"""What operators do beside producers: look at any turn, also while Redis is away, and mend what was given up."""
