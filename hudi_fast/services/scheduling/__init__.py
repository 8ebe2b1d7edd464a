"""What waits to be carried out, and whoever asks for all of it to be."""
