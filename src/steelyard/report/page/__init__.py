"""The report page: one self-contained HTML file with leaderboard, charts, and every query's lists."""
