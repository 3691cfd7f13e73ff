"""One revision a file; a revision that was released is never edited."""
