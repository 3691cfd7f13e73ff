"""What a turn's tools changed in files, as one diff."""
