"""Text to tokens and back; tokens to ids and back."""
