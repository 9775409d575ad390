"""What EM fits to the inferred classes: networks, Gaussians, features that have no say."""
