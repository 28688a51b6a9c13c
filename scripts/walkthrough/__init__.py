"""The chapters that follow one sentence through a trained model, in numbers."""
