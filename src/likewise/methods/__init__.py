"""From a problem to a fitted classifier: one program for each method, and which one to take."""
