"""What judgements tell of the perceived classes: their graph, belief propagation, mean field."""
