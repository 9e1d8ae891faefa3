"""hippogpu."""
