"""trec_eval's own measures."""
