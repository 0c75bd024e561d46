"""Private algorithms on arrays."""
