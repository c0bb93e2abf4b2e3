"""Benchmarks: `python -m bench`. Each prints a figure as a ratio against a bound or a peer measured in the same run."""
