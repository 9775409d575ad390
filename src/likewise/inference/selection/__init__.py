"""Starts, heads, noise models and numbers of classes, chosen by judgements that were held out."""
