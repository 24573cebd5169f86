"""Views: results and attention become sections of a page."""
