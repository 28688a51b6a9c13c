"""Training: schedules, teacher forcing, the update, the loop around it, checkpoints and run directories."""
