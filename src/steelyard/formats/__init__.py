"""Reading and writing runs and judgments: one file a format, found by content."""
