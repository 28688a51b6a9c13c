"""Pictures: attention heatmaps, learning curves and sentence lengths."""
