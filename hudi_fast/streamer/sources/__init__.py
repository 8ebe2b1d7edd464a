"""Sources of a streamer."""
