"""Pictures: attention heatmaps and learning curves."""
