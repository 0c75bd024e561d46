"""What several test files need: stand-ins, data, configurations; none of it is a test."""
