"""Self-attentive encoders, and decoders of the same sublayers."""
