"""Online regression on messages of users, for a budget of mutual information."""
