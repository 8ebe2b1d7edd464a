"""Planning, building, dropping and listing indexes of the metadata table."""
