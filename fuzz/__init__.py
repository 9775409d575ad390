"""Fuzzing: good files, spoilt at random, are read as judgements or refused in one sentence."""
