"""The recurrent encoder and decoder."""
