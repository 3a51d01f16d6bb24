"""Is the data any good? Findings on qrels, corpus, questions and runs, each with its effect on the leaderboard."""
