"""A folder of Markdown notes with an agent that reads, writes, fetches and deletes. Start with README.md."""
