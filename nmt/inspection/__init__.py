"""Where a model looks, in numbers and on a page to explore; one step in detail; and a report on a model."""
