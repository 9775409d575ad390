"""Few judgements, carried by what items look like: micro-clusters, trees, neighbours."""
