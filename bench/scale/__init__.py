"""What an index of many passages costs, and what it still finds."""
