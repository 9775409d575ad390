"""Files of any kind, read within bounds and written whole or not at all; knows no judgement."""
