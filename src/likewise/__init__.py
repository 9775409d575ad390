"""Likewise."""
