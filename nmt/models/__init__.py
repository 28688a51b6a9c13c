"""Encoder and decoder, `build_model`, which turns a config into modules, and directories of models and runs."""
