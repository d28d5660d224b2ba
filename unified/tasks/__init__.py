"""Fine-tuning: heads, data sets and metrics, and what trains and predicts with them.

No other package but :mod:`unified.cli` imports this one.
"""
