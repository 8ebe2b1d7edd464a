"""Lance base files, through the package pylance."""
