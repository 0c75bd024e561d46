"""Reports for whoever answers for the data: what they say is public, and by the schema."""
