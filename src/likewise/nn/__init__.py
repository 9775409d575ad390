"""Networks: the zoo, the model behind its input layer, kernels that make them fast."""
