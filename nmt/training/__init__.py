"""Training: device, schedules, teacher forcing, the update and the loop around it."""
