"""What requests send and what they are answered, where no contract says it already."""
