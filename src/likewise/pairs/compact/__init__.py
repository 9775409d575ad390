"""Tables of judgements that do not fit in memory, made small: ``build``, and ``folder`` to read."""
