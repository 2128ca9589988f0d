"""Arrays on their way in and out of an executable: what counts as one, results' memory."""
