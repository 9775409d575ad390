"""A fitted model as a folder of JSON and safetensors, never a pickle."""

from likewise.serialization.model_folder import SavedModel, read_model, write_model

__all__ = ["SavedModel", "read_model", "write_model"]
