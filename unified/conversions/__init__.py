"""Models of transformers in and out, from its folders and from TensorFlow's checkpoints of the same models."""
