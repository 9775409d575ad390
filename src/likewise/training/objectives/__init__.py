"""What is minimised: from a model's outputs and judgements to a loss and a held-out score."""
