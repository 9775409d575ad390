"""Malformed inputs, made by deterministic generators: every one must end in one sentence.

`judgements`, `items`, `labels`, `models`, `damage`, `commands` and `options` give command lines,
`requests` what is sent to the labelling server. ``manifest.txt`` lists them all, so that none can
go missing unnoticed.
"""
