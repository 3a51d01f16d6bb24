"""Results for people to look at: tables for terminals, pages and papers."""
