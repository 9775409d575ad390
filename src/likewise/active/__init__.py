"""Which pair to ask next, and which answer to ask again."""
