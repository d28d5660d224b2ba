"""Fine-tuning: heads, data sets and metrics, training and prediction.

No other package but :mod:`unified.cli` imports this one.
"""
