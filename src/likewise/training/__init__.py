"""One training loop for all objectives."""
