"""A run: a fit from files, written whole, read again, named and tracked."""

from likewise.runs.run import Run, model_folder, write_run

__all__ = ["Run", "model_folder", "write_run"]
